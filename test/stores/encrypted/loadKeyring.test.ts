import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Keyring, loadKeyring, parseKeyring } from '../../../src/stores/encrypted.ts'
import { hex, keyIds } from './fixtures.ts'

const remedy =
  'A key is 32 random bytes, written as 64 hex digits or in base64; a passphrase is not a key. Make one with: openssl rand -hex 32'
const base64 = Buffer.from(hex.old, 'hex').toString('base64')
const idsOf = ({ current, others }: Keyring): readonly string[] => [current, ...others].map(({ id }) => id)
const badSecret = (message: string) => ({ code: 'bad-secret', param: 'key', message })

describe('parseKeyring', () => {
  it.each([
    ['hex', hex.old],
    ['hex in capitals, with white space around', `\n ${hex.old.toUpperCase()}\r\n`],
    ['base64', base64],
    ['base64 without padding', base64.replace('=', '')],
    ['base64 for URLs', Buffer.from(hex.old, 'hex').toString('base64url')],
  ])('parses %s', (_, text) => {
    const { current, others } = parseKeyring(text, 'here')
    expect([current.id, Buffer.from(current.bytes).toString('hex'), others]).toEqual([keyIds.old, hex.old, []])
  })

  it('makes the first key current and drops duplicates', () => {
    expect(idsOf(parseKeyring(`${hex.new}\n${hex.old} ${hex.foreign}\n${base64}\n`, 'here'))).toEqual([
      keyIds.new,
      keyIds.old,
      keyIds.foreign,
    ])
  })

  it.each([
    ['a passphrase', 'correct-horse-battery-staple', 1],
    ['a passphrase of 32 characters', 'correct-horse-battery-staple-42!', 1],
    ['hex that is too short', hex.old.slice(2), 1],
    ['hex that is too long', `${hex.old}00`, 1],
    ['base64 of 31 bytes', Buffer.alloc(31, 7).toString('base64'), 1],
    ['base64 of 33 bytes', Buffer.alloc(33, 7).toString('base64'), 1],
    ['a second word that is no key', `${hex.old} nonsense`, 2],
  ])('rejects %s without repeating it', (_, text, position) => {
    expect(() => parseKeyring(text, 'env:KEY')).toThrow(
      expect.objectContaining(badSecret(`Key ${position} of env:KEY is not a key. ${remedy}`)),
    )
  })

  it('rejects an empty text', () =>
    expect(() => parseKeyring(' \n', 'env:KEY')).toThrow(
      expect.objectContaining(badSecret(`env:KEY holds no key. ${remedy}`)),
    ))
})

describe('loadKeyring from an environment variable', () => {
  it('returns the keys', async () =>
    expect(idsOf(await loadKeyring('env:KEY', { env: { KEY: `${hex.new} ${hex.old}` } }))).toEqual([
      keyIds.new,
      keyIds.old,
    ]))
  it('that is not set throws', async () => {
    const message = 'The environment variable KEY is not set. Set it to the key of the store.'
    await expect(loadKeyring('env:KEY', { env: {} })).rejects.toMatchObject(badSecret(message))
  })
  it('that is empty throws', async () =>
    await expect(loadKeyring('env:KEY', { env: { KEY: '' } })).rejects.toMatchObject(
      badSecret(`env:KEY holds no key. ${remedy}`),
    ))
})

describe('loadKeyring from a file', () => {
  let folder = ''
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'threadkeep key '))
  })
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = (text: string, mode: number): string => {
    const path = join(folder, 'key')
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }

  it('returns the keys', async () => {
    for (const mode of [0o600, 0o400])
      expect(idsOf(await loadKeyring(`file:${file(`${hex.new}\n${hex.old}\n`, mode)}`))).toEqual([
        keyIds.new,
        keyIds.old,
      ])
    chmodSync(join(folder, 'key'), 0o600)
  })

  it.runIf(process.platform !== 'win32').each([0o640, 0o604, 0o620, 0o610])(
    'that other users can access throws with the command to run',
    async (mode) => {
      const path = file(hex.old, mode)
      const message = `The key file ${path} is accessible to other users (mode ${mode.toString(8)}). Run: chmod 600 '${path}'`
      await expect(loadKeyring(`file:${path}`)).rejects.toMatchObject(badSecret(message))
    },
  )

  it('that is missing or holds no keys throws', async () => {
    const path = file('passphrase', 0o600)
    await expect(loadKeyring(`file:${path}`)).rejects.toMatchObject(
      badSecret(`Key 1 of file:${path} is not a key. ${remedy}`),
    )
    await expect(loadKeyring(`file:${path}.not`)).rejects.toMatchObject(
      badSecret(`The key file ${path}.not cannot be read (ENOENT). Check the path and its permissions.`),
    )
    file('x'.repeat(70_000), 0o600)
    await expect(loadKeyring(`file:${path}`)).rejects.toMatchObject(
      badSecret(`The key file ${path} has 70000 bytes, more than keys need. Put only keys into it.`),
    )
    chmodSync(folder, 0o700)
    await expect(loadKeyring(`file:${folder}`)).rejects.toMatchObject(
      badSecret(`The key file ${folder} cannot be read (EISDIR). Check the path and its permissions.`),
    )
  })
})

describe('loadKeyring from a command', () => {
  const node = (script: string): string => `command:${JSON.stringify([process.execPath, '-e', script])}`
  const shell =
    'The key command is not run by a shell. Write plain words such as command:pass show threadkeep, ' +
    'a JSON list such as command:["pass","show","my key"], or put what needs a shell into a script.'

  it('returns the printed keys', async () => {
    expect(idsOf(await loadKeyring(node(`console.log('${hex.new}\\n${hex.old}')`)))).toEqual([keyIds.new, keyIds.old])
  })

  it('passes arguments without expansion', async () => {
    const error = await loadKeyring(`command:${process.execPath} -p process.argv.length *`).catch((error) => error)
    expect(error).toMatchObject(badSecret(`Key 1 of the output of ${process.execPath} is not a key. ${remedy}`))
  })

  it.each([
    'command:pass show "my key"',
    'command:cat key | head',
    'command:echo $KEY',
    'command:[]',
    'command:["a",1]',
    'command:["a"',
    'command: ',
  ])(
    'rejects shell syntax: %s',
    async (source) => await expect(loadKeyring(source)).rejects.toMatchObject(badSecret(shell)),
  )

  it('that fails reports the reason without the arguments', async () => {
    await expect(loadKeyring(node("console.error('locked'); process.exit(3)"))).rejects.toMatchObject(
      badSecret(`The key command ${process.execPath} failed with code 3: locked.`),
    )
    await expect(loadKeyring(node('process.exit(1)'))).rejects.toMatchObject(
      badSecret(`The key command ${process.execPath} failed with code 1.`),
    )
    await expect(loadKeyring('command:no-such-program-here x')).rejects.toMatchObject(
      badSecret('The key command no-such-program-here could not be run (ENOENT).'),
    )
    await expect(loadKeyring(node("console.log('x'.repeat(70_000))"))).rejects.toMatchObject(
      badSecret(`The key command ${process.execPath} could not be run (ERR_CHILD_PROCESS_STDIO_MAXBUFFER).`),
    )
  })

  it('that hangs is killed after the timeout', async () => {
    await expect(loadKeyring(node('setInterval(() => {}, 1_000)'), { timeoutMs: 1 })).rejects.toMatchObject(
      badSecret(`The key command ${process.execPath} did not finish within 1 ms.`),
    )
  })

  it('keeps the output out of errors', async () => {
    const error = await loadKeyring(node(`console.log('${hex.old}'); process.exit(1)`)).catch((caught) => caught)
    expect([error.cause, JSON.stringify(error).includes(hex.old)]).toEqual([undefined, false])
  })
})

describe('loadKeyring', () => {
  it.each([hex.old, 'files:/x', 'file:', 'env:', '', 'http://x'])(
    'rejects an unknown source without repeating it: %s',
    async (source) => {
      const message =
        'The key source must be file:PATH, env:NAME or command:PROGRAM ARGUMENTS. The key itself is never passed directly.'
      await expect(loadKeyring(source)).rejects.toMatchObject(badSecret(message))
    },
  )
})
