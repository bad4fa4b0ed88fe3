import { describe, expect } from 'vitest'
import { type Memory, openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'

const fresh = createTempPaths()
const start = Date.UTC(2026, 2, 2, 9)

describe('forgetting a session', () => {
  const id = '+4915112345678'
  const hours = { category: 'domain', key: 'opening hours', value: 'nine to five' } as const
  const values = async (memory: Memory): Promise<unknown[]> =>
    (await memory.upkeep.knowledge('acme')).map(({ value }) => value).sort()

  verifies(['X-05', 'A-03'], 'that stated or used knowledge: its id remains in no byte of the file', async () => {
    const file = fresh()
    const memory = await openMemory({ store: `sqlite:${file}`, clock: () => start })
    await memory.remember('acme', hours)
    await memory.remember('acme', { ...hours, key: 'vat', value: '19 %', session: 'bob' })
    await memory.remember('acme', { ...hours, key: 'vat', value: '19 %', session: id })
    await memory.append(`acme:${id}`, [user('What are the opening hours, and how high is the VAT?')])
    const { ledger } = await memory.context(`acme:${id}`)
    expect(ledger.knowledge.length).toBe(2)
    await memory.append(`acme:${id}`, [assistant('The opening hours.')], { answers: ledger })
    expect(findTraces(id, databaseFiles(file))).not.toEqual([])
    await memory.forget({ key: `acme:${id}` })
    expect(findTraces(id, databaseFiles(file))).toEqual([])
    expect(await values(memory)).toEqual(['19 %', 'nine to five'])
    expect(
      (await memory.upkeep.knowledge('acme')).flatMap(({ statedBy = [], usedBy = [] }) => [...statedBy, ...usedBy]),
    ).toEqual(['bob'])
    await memory.close()
    expect(findTraces(id, databaseFiles(file))).toEqual([])
  })

  verifies(['X-05', 'A-03'], 'deletes the knowledge that only this session stated and keeps the rest', async () => {
    const file = fresh()
    const memory = await openMemory({ profile: 'agent', store: `sqlite:${file}`, clock: () => start })
    await memory.append(`acme:${id}`, [user('I have diabetes, you know.')])
    await memory.remember('acme', {
      category: 'user_preference',
      key: 'health',
      value: 'has diabetes',
      by: 'assistant',
      session: id,
    })
    await memory.remember('acme', { ...hours, session: id })
    await memory.remember('acme', { ...hours, session: 'bob' })
    await memory.remember('acme', { ...hours, key: 'vat', value: '19 %' })
    await memory.forget({ key: `acme:${id}` })
    expect(await values(memory)).toEqual(['19 %', 'nine to five'])
    expect(findTraces('diabetes', databaseFiles(file))).toEqual([])
    await memory.forget({ key: 'acme:bob' })
    expect(await values(memory)).toEqual(['19 %'])
    await memory.close()
  })

  verifies(
    ['X-05', 'A-03'],
    'keeps the knowledge that the scope itself stated, however many sessions repeated it',
    async () => {
      await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
      const sessions = Array.from({ length: 20 }, (_, at) => `s${at}`)
      await memory.remember('acme', hours)
      for (const session of sessions) await memory.remember('acme', { ...hours, session })
      for (const session of sessions) await memory.forget({ key: `acme:${session}` })
      expect(await values(memory)).toEqual(['nine to five'])
    },
  )
})

describe('knowledge whose value a session changed', () => {
  const ceo = { category: 'domain', key: 'ceo' } as const

  verifies(
    ['A-03', 'X-05'],
    'that session forgotten › is deleted, although another session stated an earlier value',
    async () => {
      const file = fresh()
      await using memory = await openMemory({ store: `sqlite:${file}`, clock: () => start })
      await memory.remember('acme', { ...ceo, value: 'Alice', session: 'ann' })
      await memory.remember('acme', { ...ceo, value: 'Zebulon', session: 'bob' })
      await memory.append('acme:bob', [user('Hello.')])
      await memory.forget({ key: 'acme:bob' })
      expect([await memory.upkeep.knowledge('acme'), findTraces('Zebulon', databaseFiles(file))]).toEqual([[], []])
    },
  )

  verifies(['A-03', 'X-05'], 'the session of the earlier value forgotten › is kept', async () => {
    await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
    await memory.remember('acme', { ...ceo, value: 'Alice', session: 'ann' })
    await memory.remember('acme', { ...ceo, value: 'Zebulon', session: 'bob' })
    await memory.forget({ key: 'acme:ann' })
    expect((await memory.upkeep.knowledge('acme')).map(({ value, statedBy }) => [value, statedBy])).toEqual([
      ['Zebulon', ['bob']],
    ])
  })
})
