import { describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { readAll } from '../portable/byteStreams.ts'
import { verifies } from '../requirements/verifies.ts'

describe('Memory.table', () => {
  it('put, get, list and delete › store values verbatim', async () => {
    let now = 1_000
    await using memory = await openMemory({ clock: () => now++, upkeep: false })
    const table = memory.table('acme')
    const secret = `ghp_${'aB3'.repeat(12)}`
    await table.put(['users', 'ann'], 'token', { secret })
    await table.put(['users'], 'photo', Uint8Array.of(1, 2))
    expect(await table.get(['users', 'ann'], 'token')).toEqual({
      namespace: ['users', 'ann'],
      key: 'token',
      value: { secret },
      createdAt: 1_000,
      updatedAt: 1_000,
      revision: 1,
    })
    expect((await table.list(['users'])).map(({ key }) => key)).toEqual(['photo', 'token'])
    expect((await table.list([], { limit: 1 })).map(({ key }) => key)).toEqual(['photo'])
    expect((await table.list([], { after: { namespace: ['users'], key: 'photo' } })).length).toBe(1)
    await table.delete(['users'], 'photo')
    expect([await table.get(['users'], 'photo'), await memory.table('zeta').list()]).toEqual([undefined, []])
    expect(await memory.search('acme', secret)).toEqual([])
  })

  verifies('X-07', 'put and delete › on another revision › are refused', async () => {
    await using memory = await openMemory({ upkeep: false })
    const table = memory.table('acme')
    await table.put([], 'lock', 'a', { expected: 0 })
    await expect(table.put([], 'lock', 'b', { expected: 0 })).rejects.toMatchObject({ code: 'conflict' })
    await expect(table.delete([], 'lock', { expected: 2 })).rejects.toMatchObject({ code: 'conflict' })
    await table.put([], 'lock', 'c', { expected: 1 })
    await table.delete([], 'lock', { expected: 2 })
    expect(await table.get([], 'lock')).toBe(undefined)
  })

  it('with a value over 16 MB, unknown options or a session › is refused', async () => {
    await using memory = await openMemory({ upkeep: false })
    const table = memory.table('acme')
    const tooLong = { code: 'bad-option', param: 'value' }
    await expect(table.put([], 'a', new Uint8Array(16_000_001))).rejects.toMatchObject(tooLong)
    await expect(table.put([], 'a', 'é'.repeat(8_000_000))).rejects.toMatchObject(tooLong)
    await table.put([], 'a', new Uint8Array(16_000_000))
    for (const options of [{ expect: 1 }, { expected: -1 }, { expected: '1' }])
      await expect(table.put([], 'a', 1, options as object)).rejects.toMatchObject({ code: 'bad-option' })
    await expect(table.delete([], 'a', { expect: 1 } as object)).rejects.toMatchObject({ code: 'bad-option' })
    await expect(table.list([], { prefix: [] } as object)).rejects.toMatchObject({ code: 'bad-option' })
    expect(() => memory.table('acme:ann')).toThrow('scope is "acme:ann"; it must be a scope such as acme.')
    expect(() => memory.table('no spaces')).toThrow('may hold only')
  })

  it('of a closed memory › is refused', async () => {
    const memory = await openMemory({ upkeep: false })
    const table = memory.table('acme')
    await memory.close()
    await expect(table.get([], 'a')).rejects.toMatchObject({ code: 'closed' })
    expect(() => memory.table('acme')).toThrow('closed')
  })

  verifies('X-12', 'export and import › carry the rows of a scope', async () => {
    await using source = await openMemory({ upkeep: false })
    await source.table('acme').put(['a'], 'b', { c: [1] })
    const bundle = await readAll(source.export({ scope: 'acme' }))
    await using target = await openMemory({ upkeep: false })
    const open = async function* () {
      yield bundle
    }
    expect(await target.import(open)).toMatchObject({ rows: 1 })
    expect((await target.table('acme').get(['a'], 'b'))?.value).toEqual({ c: [1] })
  })

  verifies('X-05', 'forget › of a scope › erases its rows; of a session or a text › does not', async () => {
    await using memory = await openMemory({ upkeep: false })
    await memory.append('acme:ann', [{ role: 'user', content: 'walrus' }])
    for (const scope of ['acme', 'zeta']) await memory.table(scope).put([], 'walrus', 'walrus')
    await memory.forget({ key: 'acme:ann' })
    await memory.forget({ scope: 'acme', text: 'walrus' })
    expect((await memory.table('acme').list()).length).toBe(1)
    expect(await memory.forget({ scope: 'acme' })).toMatchObject({ rows: 1 })
    expect([await memory.table('acme').list(), (await memory.table('zeta').list()).length]).toEqual([[], 1])
  })
})
