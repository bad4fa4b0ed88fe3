import { describe, expect, it } from 'vitest'
import { openMemory, profiles } from '../../src/index.ts'

const hello = [{ role: 'user' as const, content: 'Hello.' }]

describe('Memory.sessions', () => {
  it('with a scope, metadata, after and limit › lists matching sessions in order', async () => {
    await using memory = await openMemory({ clock: () => 1_000, upkeep: false })
    for (const key of ['acme:b', 'acme:a', 'zeta:a', 'acme:c', 'acme:d']) {
      await memory.append(key, hello)
      await memory.setMetadata(key, { metadata: { channel: key === 'acme:c' ? 'mail' : 'web', open: true } })
    }
    await memory.append('acme:plain', hello)
    await memory.remember('acme', { category: 'domain', key: 'hours', value: '9 to 5' })
    const keys = async (options?: Parameters<typeof memory.sessions>[0]) =>
      (await memory.sessions(options)).map(({ key }) => key)
    expect(await keys()).toEqual(['acme:a', 'acme:b', 'acme:c', 'acme:d', 'acme:plain', 'zeta:a'])
    expect(await keys({ scope: 'acme', metadata: { channel: 'web' } })).toEqual(['acme:a', 'acme:b', 'acme:d'])
    expect(await keys({ metadata: { channel: 'web', open: true }, after: 'acme:b', limit: 1 })).toEqual(['acme:d'])
    expect(await keys({ metadata: { channel: 'Web' } })).toEqual([])
    expect((await memory.sessions({ scope: 'zeta' }))[0]).toEqual({
      key: 'zeta:a',
      startedAt: 1_000,
      touchedAt: 1_000,
      expiresAt: Number.MAX_SAFE_INTEGER,
      messages: 1,
      metadata: { channel: 'web', open: true },
    })
  })

  it('with expired and transferred sessions › leaves them out and still fills the page', async () => {
    let now = 1_000
    const profile = { ...profiles.thread, lifetime: { ...profiles.thread.lifetime, idle: 100 } }
    await using memory = await openMemory({ clock: () => now, upkeep: false, profile })
    await memory.append('acme:a', hello)
    now = 1_050
    for (const key of ['acme:b', 'acme:c', 'acme:e']) await memory.append(key, hello)
    await memory.transfer('acme:b', 'acme:d')
    now = 1_120
    expect((await memory.sessions({ limit: 2 })).map(({ key }) => key)).toEqual(['acme:c', 'acme:d'])
  })

  it.each([
    { limit: 0 },
    { metadata: 'web' },
    { metadata: { a: [1] } },
    { metadata: { a: undefined } },
    { after: 'x y' },
  ])('with the options %j › is refused', async (options) => {
    await using memory = await openMemory({ upkeep: false })
    await expect(memory.sessions(options as object)).rejects.toMatchObject({ code: expect.stringMatching(/^bad-/) })
  })
})
