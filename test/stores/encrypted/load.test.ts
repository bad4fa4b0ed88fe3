import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Keyring, loadKeyring, parseKeyring } from '../../../src/stores/encrypted.ts'
import { hex, ids } from './stage.ts'

const remedy =
  'A key is 32 random bytes, written as 64 hex digits or in base64; a passphrase is not a key. Make one with: openssl rand -hex 32'
const base64 = Buffer.from(hex.old, 'hex').toString('base64')
const shown = ({ current, others }: Keyring): readonly string[] => [current, ...others].map(({ id }) => id)
const refused = (message: string) => ({ code: 'bad-secret', param: 'key', message })

describe('keys as text', () => {
  it.each([
    ['hex', hex.old],
    ['hex in capitals, with white space around', `\n ${hex.old.toUpperCase()}\r\n`],
    ['base64', base64],
    ['base64 without padding', base64.replace('=', '')],
    ['base64 for URLs', Buffer.from(hex.old, 'hex').toString('base64url')],
  ])('are read in %s', (_, text) => {
    const { current, others } = parseKeyring(text, 'here')
    expect([current.id, Buffer.from(current.bytes).toString('hex'), others]).toEqual([ids.old, hex.old, []])
  })

  it('have the first one current, and each of them once', () => {
    expect(shown(parseKeyring(`${hex.new}\n${hex.old} ${hex.foreign}\n${base64}\n`, 'here'))).toEqual([
      ids.new,
      ids.old,
      ids.foreign,
    ])
  })

  it.each([
    ['a passphrase', 'correct-horse-battery-staple', 1],
    ['a passphrase of 32 characters', 'correct-horse-battery-staple-42!', 1],
    ['hex that is too short', hex.old.slice(2), 1],
    ['hex that is too long', `${hex.old}00`, 1],
    ['base64 of 31 bytes', Buffer.alloc(31, 7).toString('base64'), 1],
    ['base64 of 33 bytes', Buffer.alloc(33, 7).toString('base64'), 1],
    ['a second one that is none', `${hex.old} nonsense`, 2],
  ])('are refused, and not repeated: %s', (_, text, place) => {
    expect(() => parseKeyring(text, 'env:KEY')).toThrow(
      expect.objectContaining(refused(`Key ${place} of env:KEY is not a key. ${remedy}`)),
    )
  })

  it('must be there', () =>
    expect(() => parseKeyring(' \n', 'env:KEY')).toThrow(
      expect.objectContaining(refused(`env:KEY holds no key. ${remedy}`)),
    ))
})

describe('keys from an environment variable', () => {
  it('are read', async () =>
    expect(shown(await loadKeyring('env:KEY', { env: { KEY: `${hex.new} ${hex.old}` } }))).toEqual([ids.new, ids.old]))
  it('must be set', async () => {
    const message = 'The environment variable KEY, which should hold the key, is not set.'
    await expect(loadKeyring('env:KEY', { env: {} })).rejects.toMatchObject(refused(message))
  })
  it('must not be empty', async () =>
    await expect(loadKeyring('env:KEY', { env: { KEY: '' } })).rejects.toMatchObject(
      refused(`env:KEY holds no key. ${remedy}`),
    ))
})

describe('keys from a file', () => {
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

  it('are read', async () => {
    for (const mode of [0o600, 0o400])
      expect(shown(await loadKeyring(`file:${file(`${hex.new}\n${hex.old}\n`, mode)}`))).toEqual([ids.new, ids.old])
    chmodSync(join(folder, 'key'), 0o600)
  })

  it.runIf(process.platform !== 'win32').each([0o640, 0o604, 0o620, 0o610])(
    'are refused when others may use the file, with what to run',
    async (mode) => {
      const path = file(hex.old, mode)
      const message = `The key file ${path} is open to others than its owner (mode ${mode.toString(8)}). Run: chmod 600 '${path}'`
      await expect(loadKeyring(`file:${path}`)).rejects.toMatchObject(refused(message))
    },
  )

  it('must be there and be keys', async () => {
    const path = file('passphrase', 0o600)
    await expect(loadKeyring(`file:${path}`)).rejects.toMatchObject(
      refused(`Key 1 of file:${path} is not a key. ${remedy}`),
    )
    await expect(loadKeyring(`file:${path}.not`)).rejects.toMatchObject(
      refused(`The key file ${path}.not cannot be read (ENOENT).`),
    )
    file('x'.repeat(70_000), 0o600)
    await expect(loadKeyring(`file:${path}`)).rejects.toMatchObject(
      refused(`The key file ${path} has 70000 bytes; it should hold nothing but keys.`),
    )
    chmodSync(folder, 0o700)
    await expect(loadKeyring(`file:${folder}`)).rejects.toMatchObject(
      refused(`The key file ${folder} cannot be read (EISDIR).`),
    )
  })
})

describe('keys from a command', () => {
  const node = (script: string): string => `command:${JSON.stringify([process.execPath, '-e', script])}`
  const shell =
    'The key command is not run by a shell. Write plain words such as command:pass show threadkeep, ' +
    'a JSON list such as command:["pass","show","my key"], or put what needs a shell into a script.'

  it('are what it prints', async () => {
    expect(shown(await loadKeyring(node(`console.log('${hex.new}\\n${hex.old}')`)))).toEqual([ids.new, ids.old])
  })

  it('get their arguments as words, with nothing in them expanded', async () => {
    const wrong = await loadKeyring(`command:${process.execPath} -p process.argv.length *`).catch((error) => error)
    expect(wrong).toMatchObject(refused(`Key 1 of what ${process.execPath} printed is not a key. ${remedy}`))
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
    'are not asked of a shell: %s',
    async (source) => await expect(loadKeyring(source)).rejects.toMatchObject(refused(shell)),
  )

  it('say why there are none, without the arguments', async () => {
    await expect(loadKeyring(node("console.error('locked'); process.exit(3)"))).rejects.toMatchObject(
      refused(`The key command ${process.execPath} failed with code 3: locked.`),
    )
    await expect(loadKeyring(node('process.exit(1)'))).rejects.toMatchObject(
      refused(`The key command ${process.execPath} failed with code 1.`),
    )
    await expect(loadKeyring('command:no-such-program-here x')).rejects.toMatchObject(
      refused('The key command no-such-program-here did not work (ENOENT).'),
    )
    await expect(loadKeyring(node("console.log('x'.repeat(70_000))"))).rejects.toMatchObject(
      refused(`The key command ${process.execPath} did not work (ERR_CHILD_PROCESS_STDIO_MAXBUFFER).`),
    )
  })

  it('are not waited for without end', async () => {
    await expect(loadKeyring(node('setInterval(() => {}, 1_000)'), { patience: 1 })).rejects.toMatchObject(
      refused(`The key command ${process.execPath} did not end within 1 ms.`),
    )
  })

  it('keep what was printed out of errors', async () => {
    const error = await loadKeyring(node(`console.log('${hex.old}'); process.exit(1)`)).catch((caught) => caught)
    expect([error.cause, JSON.stringify(error).includes(hex.old)]).toEqual([undefined, false])
  })
})

describe('the source of a key', () => {
  it.each([hex.old, 'files:/x', 'file:', 'env:', '', 'http://x'])(
    'must say of which kind it is, and is not repeated: %s',
    async (source) => {
      const message =
        'The key must come from file:PATH, env:NAME or command:PROGRAM ARGUMENTS, and is never given itself.'
      await expect(loadKeyring(source)).rejects.toMatchObject(refused(message))
    },
  )
})
