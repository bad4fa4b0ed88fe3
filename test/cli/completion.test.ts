import { execFile } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { createCliHarness, lines } from './cliHarness.ts'
import { compileCacheEnv } from './command.ts'

const { folder, run, output, json } = createCliHarness('completion')

beforeAll(async () => {
  await using memory = await openMemory({ store: `sqlite:${join(folder, 'threadkeep.db')}`, upkeep: false })
  for (const key of ['demo:me', 'demo:you', 'acme:ann']) await memory.append(key, [{ role: 'user', content: 'Hello' }])
  await memory.remember('zoo', { category: 'domain', key: 'walrus', value: 'Bruno' })
})

const complete = async (...words: string[]): Promise<string[]> =>
  (await output('complete', '--', ...words))
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t')[0] ?? '')

describe('threadkeep complete', () => {
  it('completes commands, subcommands and options', async () => {
    expect(await complete('se')).toEqual(['serve', 'sessions', 'search'])
    expect(await complete('keys', '')).toEqual(['create', 'list', 'revoke'])
    expect(await complete('forget', '--')).toContain('--dry-run')
    expect(await complete('completion', '')).toEqual(['bash', 'zsh', 'fish'])
    expect(JSON.parse(await output('complete', '--json', '--', 'serv'))).toEqual({
      items: [{ value: 'serve', meaning: 'serve memory through the OpenAI and Anthropic protocols' }],
    })
  })
  verifies('S-02', 'completes session keys and scopes of the store', async () => {
    expect(await complete('facts', 'demo:')).toEqual(['demo:me', 'demo:you'])
    expect(await complete('facts', '--history', 'a')).toEqual(['acme:ann'])
    expect(await complete('search', '')).toEqual(['acme', 'demo', 'zoo'])
    expect(await complete('export', '--scope', 'z')).toEqual(['zoo'])
    expect(await complete('facts', '--store', 'sqlite:nowhere.db', 'd')).toEqual([''])
  })
  it('is silent on failure', async () => {
    writeFileSync(join(folder, 'damaged.db'), 'x'.repeat(9_000))
    for (const words of [['nonsense', 'x'], ['facts', '--store', 'sqlite:damaged.db', ''], []])
      expect(await run(['complete', '--', ...words])).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('threadkeep completion', () => {
  verifies('S-02', 'bash › completes commands and keys in a real shell', async () => {
    const program = join(folder, 'threadkeep')
    writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${root}src/cli/main.ts" "$@"\n`)
    chmodSync(program, 0o755)
    writeFileSync(join(folder, 'completion.bash'), await output('completion', 'bash'))
    // Bash splits words at colons; the replies contain only the part after the last one.
    const script = lines(
      'source completion.bash',
      `ask() { COMP_LINE="$1"; COMP_POINT=$(printf %s "$1" | wc -c); _threadkeep threadkeep; echo "$\{COMPREPLY[*]}"; }`,
      "COMP_WORDBREAKS=$' \\t\\n\"\\'><=;|&(:'",
      'ask "threadkeep kn"',
      'ask "threadkeep knowledge "',
      'ask "threadkeep facts demo:"',
      'ask "threadkeep facts ac"',
      'complete -p threadkeep',
    )
    const { stdout } = await promisify(execFile)('bash', ['--norc', '-c', script], {
      cwd: folder,
      env: { ...process.env, ...compileCacheEnv, PATH: `${folder}:${process.env.PATH}` },
    })
    expect(stdout).toBe(
      lines(
        'knowledge',
        'list approve restore reject',
        'me you',
        'acme:ann',
        'complete -o default -F _threadkeep threadkeep',
      ),
    )
  })
  it('zsh and fish › ask the same command and fall back to files', async () => {
    const [zsh, fish] = [await output('completion', 'zsh'), await output('completion', 'fish')]
    expect(zsh).toMatch(/^#compdef threadkeep\n/)
    for (const script of [zsh, fish]) expect(script).toMatch(/ complete -- .* 2> \/dev\/null/)
    expect(zsh).toContain('_describe threadkeep candidates')
    expect(zsh).toContain('_files')
    expect(fish).toContain("complete -c threadkeep -f -a '(__threadkeep_complete)'")
    expect(fish).toContain('__fish_complete_path')
    expect(await json('completion', 'fish')).toEqual({ shell: 'fish', script: fish })
  })
})
