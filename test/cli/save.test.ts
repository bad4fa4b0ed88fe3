import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { type Ended, start } from './command.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-save-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Runs the command in a folder of its own, with memory in its default place there. */
const run = (args: readonly string[], input = '', env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  start('src/cli/main.ts', args, { THREADKEEP_STORE: '', ...env }, input, folder).ended
const json = async (args: readonly string[], input = ''): Promise<Record<string, unknown>> => {
  const { code, stdout, stderr } = await run([...args, '--json'], input)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

describe('threadkeep save', () => {
  verifies(['H-04', 'S-02'], 'explains itself', async () => {
    const { code, stdout } = await run(['save', '--help'])
    expect([
      code,
      stdout.includes('\nExamples:\n  threadkeep save chat.txt'),
      stdout.includes('Exit codes: 0 fine'),
    ]).toEqual([0, true, true])
  })

  verifies(
    ['H-04', 'H-08'],
    'saves a transcript from a file or the standard input, and the same again only once',
    async () => {
      writeFileSync(join(folder, 'chat.txt'), 'User: The login page fails.\nAssistant: It is the umlaut.\n')
      const { code, stdout, stderr } = await run(['save', 'chat.txt', '--workspace', 'billing'])
      expect([code, stderr]).toEqual([0, ''])
      const id =
        /^billing:(session_\d{13}_[0-9a-f]{8}) is saved: 2 messages \(2 new\), \d+ items?, 0 files\.\n$/.exec(
          stdout,
        )?.[1] ?? ''
      expect(id).not.toBe('')
      const lines =
        '{"role":"user","content":"The login page fails."}\n{"role":"assistant","content":"It is the umlaut."}\n{"role":"user","content":"Fixed."}\n'
      expect(await json(['save', '--workspace', 'billing', '--session', id], lines)).toMatchObject({
        sessionId: id,
        messages: 3,
        added: 1,
      })
      const shown = await run(['sessions', 'show', `billing:${id}`])
      expect(shown.stdout).toContain('m3 user: Fixed.\n')
      expect((await run(['sessions', 'list'])).stdout).toMatch(
        new RegExp(`^billing:${id} {2}3 messages, last written .* UTC {2}The login page fails\\.\n$`),
      )
      // As it was printed, the id says which workspace it is in.
      expect(
        await json(
          ['save', '--session', `billing:${id}`],
          'User: It is done, and so is everything that was left to do.',
        ),
      ).toMatchObject({ messages: 4 })
    },
  )

  verifies('S-02', 'prints nothing that a terminal would obey', async () => {
    const { stdout } = await run(['save', '--workspace', 'signs', '--json'], 'User: Look\u0007 at \u202ethis.')
    const { sessionId } = JSON.parse(stdout) as { sessionId: string }
    expect((await run(['sessions', 'list', 'signs'])).stdout).toContain('  Look at this.\n')
    expect((await run(['sessions', 'show', `signs:${sessionId}`])).stdout).toContain('m1 user: Look at this.\n')
  })

  verifies('H-04', 'takes no file that is not what it says, and nothing that is no text', async () => {
    const files: readonly (readonly [name: string, bytes: string | Uint8Array, message: string])[] = [
      [
        'bad.json',
        '[{"role":"user","content":"Hello"',
        'bad.json holds no messages as JSON. It must be a list such as [{ "role": "user", "content": "Hello" }], { "messages": […] }, or one message a line; text belongs into a file of another name.',
      ],
      [
        'noise.txt',
        new Uint8Array([0x89, 0x50, 0xff, 0xfe]),
        'noise.txt is no text in UTF-8. Name a transcript as text, JSON or JSON Lines.',
      ],
      ['nul.txt', 'User: a\0b', 'nul.txt is no text in UTF-8. Name a transcript as text, JSON or JSON Lines.'],
    ]
    for (const [name, bytes, message] of files) {
      writeFileSync(join(folder, name), bytes)
      expect(await run(['save', name])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` })
    }
    writeFileSync(join(folder, 'mute.json'), '[{"role":"user","text":"Hello"}]')
    expect(await run(['save', 'mute.json'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'threadkeep: messages[0].content is missing; it holds what was said, as text or as a list of parts.\n',
    })
  })

  const wrong: readonly (readonly [args: readonly string[], message: string])[] = [
    [['nowhere.txt'], 'nowhere.txt cannot be read. Name the transcript to save.'],
    [['chat.txt', '--directory', 'x'], 'A file to save and --directory do not go together; choose one.'],
    [['--store', 'ram:'], 'store is "ram:"; what is saved there is lost at once. Choose sqlite:PATH.'],
    [
      ['--session', 'session_1'],
      'There is no session "session_1" in this workspace. threadkeep sessions list tells which there are.',
    ],
    [['--workspace', 'billing:x'], 'workspace is "billing:x"; it must be a name such as my-project, without a colon.'],
    [
      [],
      'There is nothing to save. Name a file, or write the conversation to the standard input; --session alone saves a session again.',
    ],
  ]
  for (const [args, message] of wrong)
    it(`says in one line what is wrong with: save ${args.join(' ')}`, async () =>
      expect(await run(['save', ...args])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }))
})
