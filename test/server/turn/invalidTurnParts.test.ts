import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { user } from '../start.ts'
import { openTestSession } from './testSession.ts'

const readsPersons = { memory: { profile: { ...profiles.thread, scopes: ['session', 'scope', 'person'] as const } } }

describe('a turn with invalid parts', () => {
  it('an unreadable file › is answered, and the degradation header reports the file', async () => {
    await using session = await openTestSession()
    const file = {
      type: 'file',
      file: { filename: 'noise.bin', file_data: 'data:application/octet-stream;base64,AAEC/w==' },
    }
    const parts = [file, { type: 'text', text: 'What is in it?' }]
    const { status, headers } = await session.chat([{ role: 'user', content: parts }], {}, 'demo')
    expect([status, headers.get('x-threadkeep-degraded')]).toEqual([200, 'file-bad-message'])
    expect(session.model.requests.at(-1)?.body.messages).toEqual([{ role: 'user', content: parts }])
    expect((await session.transcript('demo')).at(-1)).toBe('assistant: Re: What is in it?')
    expect((await session.server.requestJson('GET /api/scopes/demo/files')).body).toEqual({ items: [], next: null })
  })

  it.each(['Ann Smith', 'ann:2', '..', 'a'.repeat(129)])(
    'person name %s › is refused before anything is stored',
    async (person) => {
      await using session = await openTestSession(readsPersons)
      const { status, body } = await session.chat([user('Hello')], { 'x-threadkeep-person': person })
      expect([status, body.error.code]).toEqual([400, 'bad-key'])
      expect([await session.transcript(), session.model.requests]).toEqual([[], []])
      expect((await session.chat([user('Hello')], { 'x-threadkeep-person': 'ann' })).status).toBe(200)
      expect(await session.transcript()).toEqual(['user: Hello', 'assistant: Re: Hello'])
    },
  )

  it('any person name with a profile that does not read persons › is accepted', async () => {
    await using session = await openTestSession()
    expect((await session.chat([user('Hello')], { 'x-threadkeep-person': 'Ann Smith' })).status).toBe(200)
  })
})
