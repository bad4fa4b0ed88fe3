import { constants, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { open, readFile, writeFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { createFolder, openAnchored, readText, writeText } from '../../src/mcp/files/operations.ts'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { createFilesFixture, secret } from './filesFixture.ts'

const moved = 'was changed while it was being opened, so nothing was done. Try again.'

describe('link swapped into a path between check and use', () => {
  verifies('H-09', 'at the end of the path is not followed', async () => {
    using fixture = createFilesFixture()
    const { at } = fixture
    const real = await fixture.files.authorize('ann', 'read', at('app/hello.txt'))
    renameSync(at('app/hello.txt'), at('app/aside.txt'))
    symlinkSync(at('outside/secret.txt'), at('app/hello.txt'))
    await expect(readText(real)).rejects.toThrow(moved)
    await expect(writeText(real, 'x')).rejects.toThrow(moved)
    expect(readFileSync(at('outside/secret.txt'), 'utf8')).toBe(secret)
  })

  verifies('H-09', 'as the parent folder is not followed', async () => {
    using fixture = createFilesFixture()
    const { at } = fixture
    writeFileSync(at('outside/today.md'), secret)
    const real = await fixture.files.authorize('ann', 'read', at('app/notes/today.md'))
    renameSync(at('app/notes'), at('app/aside'))
    symlinkSync(at('outside'), at('app/notes'))
    for (const work of [() => readText(real), () => writeText(real, 'x'), () => createFolder(at('app/notes/new'))])
      await expect(work()).rejects.toThrow(moved)
    expect(readdirSync(at('outside')).sort()).toEqual(['deep', 'secret.txt', 'today.md'])
    expect(readFileSync(at('outside/today.md'), 'utf8')).toBe(secret)
  })

  verifies('H-09', 'as a folder further up is not followed', async () => {
    using fixture = createFilesFixture()
    const { at } = fixture
    mkdirSync(at('app/notes/deep'))
    renameSync(at('app/notes'), at('app/aside'))
    symlinkSync(at('outside'), at('app/notes'))
    await expect(readText(at('app/notes/deep/secret.txt'))).rejects.toThrow(moved)
    await expect(writeText(at('app/notes/deep/secret.txt'), 'x')).rejects.toThrow(moved)
    expect(readFileSync(at('outside/deep/secret.txt'), 'utf8')).toBe(secret)
  })

  it('does not affect operations in an anchored folder', async () => {
    using fixture = createFilesFixture()
    const { at } = fixture
    await using folder = await openAnchored(at('app/notes'))
    renameSync(at('app/notes'), at('app/aside'))
    symlinkSync(at('outside'), at('app/notes'))
    await writeFile(folder.pathOf('new.md'), 'New.')
    expect([readFileSync(at('app/aside/new.md'), 'utf8'), readdirSync(at('outside')).sort()]).toEqual([
      'New.',
      ['deep', 'secret.txt'],
    ])
    expect(await readFile(folder.pathOf('today.md'), 'utf8')).toBe('# Today\n')
    await expect(open(folder.pathOf('secret.txt'), constants.O_RDONLY)).rejects.toThrow('ENOENT')
    await expect(folder.confirm()).rejects.toThrow(moved)
  })

  verifies(
    'H-09',
    'and back in a loop never leads outside',
    async () => {
      using fixture = createFilesFixture()
      const { at, files } = fixture
      writeFileSync(at('outside/today.md'), secret)
      const swapper = startProgram('test/mcp/swap.ts', [at('app/notes'), at('outside')])
      await swapper.waitForOutput('swapping')
      const results = new Set<string>()
      for (let n = 0; n < 100; n++) {
        const file = await files.look('ann', at('app/notes/today.md'))
        results.add(file.status === 'there' ? file.text : file.status)
        await files.write('ann', at('app/notes/new.md'), 'New.').catch(() => undefined)
        await files.createDirectory('ann', at(`app/notes/made/${n}`)).catch(() => undefined)
      }
      swapper.process.kill('SIGKILL')
      await swapper.result
      expect([...results].filter((text) => !['# Today\n', 'missing', 'refused'].includes(text))).toEqual([])
      expect(readdirSync(at('outside')).sort()).toEqual(['deep', 'secret.txt', 'today.md'])
      expect(readFileSync(at('outside/today.md'), 'utf8')).toBe(secret)
    },
    60_000,
  )
})
