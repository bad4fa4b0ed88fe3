import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { user } from '../start.ts'
import { openScene } from './scene.ts'

const seesPersons = { memory: { profile: { ...profiles.thread, sees: ['session', 'scope', 'person'] as const } } }

describe('a turn that cannot be taken as it is', () => {
  it('is answered though a file in it cannot be read, and the client is told', async () => {
    await using scene = await openScene()
    const file = {
      type: 'file',
      file: { filename: 'noise.bin', file_data: 'data:application/octet-stream;base64,AAEC/w==' },
    }
    const parts = [file, { type: 'text', text: 'What is in it?' }]
    const { status, headers } = await scene.chat([{ role: 'user', content: parts }], {}, 'demo')
    expect([status, headers.get('x-threadkeep-degraded')]).toEqual([200, 'file bad-message'])
    expect(scene.model.requests.at(-1)?.body.messages).toEqual([{ role: 'user', content: parts }])
    expect((await scene.said('demo')).at(-1)).toBe('assistant: Re: What is in it?')
    expect((await scene.server.ask('GET /api/scopes/demo/files')).body).toEqual({ items: [], next: null })
  })

  it.each(['Ann Smith', 'ann:2', '..', 'a'.repeat(129)])(
    'is refused before anything is stored, if it names a person as no person can be named: %s',
    async (person) => {
      await using scene = await openScene(seesPersons)
      const { status, body } = await scene.chat([user('Hello')], { 'x-threadkeep-person': person })
      expect([status, body.error.code]).toEqual([400, 'bad-key'])
      expect([await scene.said(), scene.model.requests]).toEqual([[], []])
      expect((await scene.chat([user('Hello')], { 'x-threadkeep-person': 'ann' })).status).toBe(200)
      expect(await scene.said()).toEqual(['user: Hello', 'assistant: Re: Hello'])
    },
  )

  it('is taken whatever it names, where nobody asks who speaks', async () => {
    await using scene = await openScene()
    expect((await scene.chat([user('Hello')], { 'x-threadkeep-person': 'Ann Smith' })).status).toBe(200)
  })
})
