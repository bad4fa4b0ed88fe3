import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createCliHarness } from './cliHarness.ts'

const { folder, run, output } = createCliHarness('save')

const runJson = async (args: readonly string[], input: string): Promise<Record<string, unknown>> => {
  const { code, stdout, stderr } = await run([...args, '--json'], input)
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout)
}

describe('threadkeep save', () => {
  verifies(['H-04', 'S-02'], '--help prints usage, examples and exit codes', async () => {
    const { code, stdout } = await run(['save', '--help'])
    expect([
      code,
      stdout.includes('\nExamples:\n  threadkeep save chat.txt'),
      stdout.includes('Exit codes: 0 success'),
    ]).toEqual([0, true, true])
  })

  verifies(
    ['H-04', 'H-08'],
    'saves a transcript from a file or standard input, and stores repeated messages once',
    async () => {
      writeFileSync(join(folder, 'chat.txt'), 'User: The login page fails.\nAssistant: It is the umlaut.\n')
      const { code, stdout, stderr } = await run(['save', 'chat.txt', '--workspace', 'billing'])
      expect([code, stderr]).toEqual([0, ''])
      const id =
        /^Saved billing:(session_\d{13}_[0-9a-f]{8}): 2 messages \(2 new\), \d+ items?, 0 files\.\n$/.exec(
          stdout,
        )?.[1] ?? ''
      expect(id).not.toBe('')
      const lines =
        '{"role":"user","content":"The login page fails."}\n{"role":"assistant","content":"It is the umlaut."}\n{"role":"user","content":"Fixed."}\n'
      expect(await runJson(['save', '--workspace', 'billing', '--session', id], lines)).toMatchObject({
        sessionId: id,
        messages: 3,
        added: 1,
      })
      const shown = await run(['sessions', 'show', `billing:${id}`])
      expect(shown.stdout).toContain('m3 user: Fixed.\n')
      expect((await run(['sessions', 'list'])).stdout).toMatch(
        new RegExp(`^billing:${id} {2}3 messages {2}last written .* UTC {2}The login page fails\\.\n$`),
      )
      // An id as printed contains its workspace.
      expect(
        await runJson(
          ['save', '--session', `billing:${id}`],
          'User: It is done, and so is everything that was left to do.',
        ),
      ).toMatchObject({ messages: 4 })
    },
  )

  verifies('S-02', 'strips control characters from titles and messages', async () => {
    const { stdout } = await run(['save', '--workspace', 'signs', '--json'], 'User: Look\u0007 at \u202ethis.')
    const { sessionId } = JSON.parse(stdout) as { sessionId: string }
    expect((await run(['sessions', 'list', 'signs'])).stdout).toContain('  Look at this.\n')
    expect((await run(['sessions', 'show', `signs:${sessionId}`])).stdout).toContain('m1 user: Look at this.\n')
  })

  verifies('H-04', 'rejects invalid JSON, binary files and messages without content', async () => {
    const files: readonly (readonly [name: string, bytes: string | Uint8Array, message: string])[] = [
      [
        'bad.json',
        '[{"role":"user","content":"Hello"',
        'bad.json contains no JSON messages. It must be an array such as [{ "role": "user", "content": "Hello" }], { "messages": […] }, or one message per line. For plain text, use another file extension.',
      ],
      [
        'noise.txt',
        new Uint8Array([0x89, 0x50, 0xff, 0xfe]),
        'noise.txt is not UTF-8 text. Name a transcript in text, JSON or JSON Lines.',
      ],
      ['nul.txt', 'User: a\0b', 'nul.txt is not UTF-8 text. Name a transcript in text, JSON or JSON Lines.'],
    ]
    for (const [name, bytes, message] of files) {
      writeFileSync(join(folder, name), bytes)
      expect(await run(['save', name])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` })
    }
    writeFileSync(join(folder, 'mute.json'), '[{"role":"user","text":"Hello"}]')
    expect(await run(['save', 'mute.json'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'threadkeep: messages[0].content is missing. Give it as text or as a list of parts.\n',
    })
  })

  verifies('P-04', '--directory › replaces sessions of the folder only with --force', async () => {
    writeFileSync(join(folder, 'kept.txt'), 'User: Fix the login test.\nAssistant: Done.\n')
    await output('save', 'kept.txt', '--workspace', 'folders')
    const write = ['save', '--workspace', 'folders', '--directory', 'kept']
    await output(...write)
    expect(await run(write)).toEqual({
      code: 2,
      stdout: '',
      stderr: `threadkeep: ${join('kept', 'sessions', 'folders')} exists. Choose another folder with --directory, or replace what it has with --force.\n`,
    })
    await output(...write, '--force')
  })

  const invalid: readonly (readonly [args: readonly string[], message: string])[] = [
    [['nowhere.txt'], 'Cannot read nowhere.txt. Name the transcript to save.'],
    [['chat.txt', '--directory', 'x'], 'A file and --directory cannot be combined. Choose one.'],
    [['--store', 'ram:'], 'store is "ram:", which is lost on exit. Use sqlite:PATH.'],
    [
      ['--session', 'session_1'],
      'There is no session "session_1" in this workspace. Run threadkeep sessions list to see all sessions.',
    ],
    [['--workspace', 'billing:x'], 'workspace is "billing:x"; it must be a name such as my-project, without a colon.'],
    [
      [],
      'There is nothing to save. Name a file, or pipe the conversation to standard input; --session alone saves a session again.',
    ],
  ]
  for (const [args, message] of invalid)
    it(`invalid input prints one line and exits with 2: save ${args.join(' ')}`, async () =>
      expect(await run(['save', ...args])).toEqual({ code: 2, stdout: '', stderr: `threadkeep: ${message}\n` }))

  verifies(
    'H-04',
    '--keep needed › of a long transcript › stores the needed lines, and restores what is asked',
    async () => {
      const turns = Array.from(
        { length: 900 },
        (_, index) => `User: Nothing much happened on day ${index}, it was as grey as ever.`,
      )
      turns[300] = 'User: Mel calls her two cats Oliver and Luna.'
      const args = ['save', '--workspace', 'needed', '--keep']
      const { code, stdout } = await run([...args, 'needed'], turns.join('\n'))
      expect([code, /\nLeft out \d+ tokens of \d+ messages\.\n$/.test(stdout)]).toEqual([0, true])
      const query = ['--budget', '1000', '--query', "What are Mel's pets called?"]
      expect((await run(['restore', '--workspace', 'needed', ...query])).stdout).toContain('Oliver and Luna')
      const all = await runJson([...args, 'all'], turns.join('\n'))
      expect(all.leftOut).toBeUndefined()
      const refused = await run([...args, 'most'], turns.join('\n'))
      expect([refused.code === 0, refused.stderr.includes('keep is "most"; it must be one of all, needed')]).toEqual([
        false,
        true,
      ])
    },
  )
})
