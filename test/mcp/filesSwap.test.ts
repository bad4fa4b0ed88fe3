import { constants, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { open, readFile, writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { anchored } from '../../src/mcp/files/anchor.ts'
import { readText, writeText } from '../../src/mcp/files/contents.ts'
import { makeFolder } from '../../src/mcp/files/folders.ts'
import { start } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { secret, stage } from './filesStage.ts'

const moved = 'was changed while it was being opened, so nothing was done. Try again.'

describe('a link put into a path between check and use', () => {
  verifies('H-09', 'at its end is not followed', async () => {
    using place = stage()
    const { at } = place
    const real = await place.desk.guard('ann', 'read', at('app/hello.txt'))
    renameSync(at('app/hello.txt'), at('app/aside.txt'))
    symlinkSync(at('outside/secret.txt'), at('app/hello.txt'))
    await expect(readText(real)).rejects.toThrow(moved)
    await expect(writeText(real, 'x')).rejects.toThrow(moved)
    expect(readFileSync(at('outside/secret.txt'), 'utf8')).toBe(secret)
  })

  verifies('H-09', 'in the middle of it is not followed', async () => {
    using place = stage()
    const { at } = place
    writeFileSync(at('outside/today.md'), secret)
    const real = await place.desk.guard('ann', 'read', at('app/notes/today.md'))
    renameSync(at('app/notes'), at('app/aside'))
    symlinkSync(at('outside'), at('app/notes'))
    for (const work of [() => readText(real), () => writeText(real, 'x'), () => makeFolder(at('app/notes/new'))])
      await expect(work()).rejects.toThrow(moved)
    expect(readdirSync(at('outside')).sort()).toEqual(['deep', 'secret.txt', 'today.md'])
    expect(readFileSync(at('outside/today.md'), 'utf8')).toBe(secret)
  })

  verifies('H-09', 'further up is not followed', async () => {
    using place = stage()
    const { at } = place
    mkdirSync(at('app/notes/deep'))
    renameSync(at('app/notes'), at('app/aside'))
    symlinkSync(at('outside'), at('app/notes'))
    await expect(readText(at('app/notes/deep/secret.txt'))).rejects.toThrow(moved)
    await expect(writeText(at('app/notes/deep/secret.txt'), 'x')).rejects.toThrow(moved)
    expect(readFileSync(at('outside/deep/secret.txt'), 'utf8')).toBe(secret)
  })

  it('does not reach what is done in a folder that is held on to', async () => {
    using place = stage()
    const { at } = place
    await using folder = await anchored(at('app/notes'))
    renameSync(at('app/notes'), at('app/aside'))
    symlinkSync(at('outside'), at('app/notes'))
    await writeFile(folder.inside('new.md'), 'New.')
    expect([readFileSync(at('app/aside/new.md'), 'utf8'), readdirSync(at('outside')).sort()]).toEqual([
      'New.',
      ['deep', 'secret.txt'],
    ])
    expect(await readFile(folder.inside('today.md'), 'utf8')).toBe('# Today\n')
    await expect(open(folder.inside('secret.txt'), constants.O_RDONLY)).rejects.toThrow('ENOENT')
    await expect(folder.confirm()).rejects.toThrow(moved)
  })

  verifies(
    'H-09',
    'and taken out again, over and over, never leads outside',
    async () => {
      using place = stage()
      const { at, desk } = place
      writeFileSync(at('outside/today.md'), secret)
      const swapper = start('test/mcp/swap.ts', [at('app/notes'), at('outside')])
      await swapper.until('swapping')
      const seen = new Set<string>()
      for (let n = 0; n < 100; n++) {
        const look = await desk.look('ann', at('app/notes/today.md'))
        seen.add(look.status === 'there' ? look.text : look.status)
        await desk.write('ann', at('app/notes/new.md'), 'New.').catch(() => undefined)
        await desk.createDirectory('ann', at(`app/notes/made/${n}`)).catch(() => undefined)
      }
      swapper.process.kill('SIGKILL')
      await swapper.ended
      expect([...seen].filter((text) => !['# Today\n', 'missing', 'refused'].includes(text))).toEqual([])
      expect(readdirSync(at('outside')).sort()).toEqual(['deep', 'secret.txt', 'today.md'])
      expect(readFileSync(at('outside/today.md'), 'utf8')).toBe(secret)
    },
    60_000,
  )
})
