import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/domain/error.ts'
import { AuditLog } from '../../src/mcp/files/audit.ts'
import { FileAccess, type Operation } from '../../src/mcp/files/fileAccess.ts'
import { verifies } from '../requirements/verifies.ts'
import { createFilesFixture, secret } from './filesFixture.ts'

/** Expects a file error and returns its message. */
async function errorMessage(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    (value) => expect.unreachable(`It resolved to ${JSON.stringify(value)}.`),
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(MemoryError)
  const { code, message, param } = error as MemoryError
  expect([code, param]).toEqual(['bad-option', 'path'])
  return message
}

const outside = 'is not in an allowed folder. Call list_directory without a path to see the allowed folders.'
const name = 'is not a valid path: use text without NUL, at most 4,096 bytes long, with names of at most 255 bytes.'

type Attack = readonly [what: string, path: (at: (...names: string[]) => string) => string, reason: string]
const attacks: readonly Attack[] = [
  ['a prefix twin', (at) => at('app-evil/secret.txt'), outside],
  ['a prefix twin that is a file', (at) => `${at('app')}.txt`, outside],
  ['the folder above', (at) => at('.'), outside],
  ['two dots', (at) => `${at('app')}/../outside/secret.txt`, outside],
  ['two dots through a folder inside', (at) => `${at('app/notes')}/../../outside/secret.txt`, outside],
  ['two dots through a link', (at) => `${at('app/linked')}/../outside/secret.txt`, 'does not exist.'],
  ['relative dots', () => '../outside/secret.txt', outside],
  ['a link to a file', (at) => at('app/link.txt'), outside],
  ['a link to a folder', (at) => at('app/linked/secret.txt'), outside],
  ['a folder deep behind a link', (at) => at('app/linked/deep/secret.txt'), outside],
  ['a dangling link', (at) => at('app/dangling.txt'), outside],
  ['a link to itself', (at) => at('app/loop'), outside],
  ['a missing file behind a link', (at) => at('app/linked/none/none.txt'), outside],
  ['a missing file outside', (at) => at('outside/none.txt'), outside],
  ['another case of the folder', (at) => at('APP/hello.txt'), outside],
  ['another case of a file', (at) => at('app/HELLO.txt'), 'does not exist.'],
  ['a missing file inside', (at) => at('app/none/none.txt'), 'does not exist.'],
  ['a file used as a folder', (at) => at('app/hello.txt/x'), 'does not exist.'],
  ['a NUL', (at) => `${at('app/hello.txt')}\0.png`, name],
  ['a NUL that hides an extension', (at) => `${at('outside/secret.txt')}\0${at('app')}`, name],
  ['a lone surrogate', (at) => at('app/\ud83d'), name],
  ['a name that is too long', (at) => at(`app/${'a'.repeat(256)}`), name],
  ['a path that is too long', (at) => at(`app/${'a/'.repeat(2_100)}b`), name],
  ['an empty path', () => '', name],
  ['the root', () => '/', outside],
  ['a device', () => '/dev/zero', outside],
  ['the process itself', () => '/proc/self/environ', outside],
  ['a home folder', () => '~/.ssh/id_ed25519', 'does not exist.'],
  ['a file URL', (at) => `file://${at('app/hello.txt')}`, 'does not exist.'],
  ['percent encoding', (at) => `${at('app')}/%2e%2e/outside/secret.txt`, 'does not exist.'],
]

describe('file access', () => {
  for (const [what, path, reason] of attacks) {
    verifies('H-09', `by ${what} is denied and logged`, async () => {
      using fixture = createFilesFixture()
      const message = await errorMessage(fixture.files.read('ann', path(fixture.at)))
      expect(message.endsWith(` ${reason}`)).toBe(true)
      expect(message).not.toContain(secret)
      const [line, ...more] = fixture.auditLines()
      expect(more).toEqual([])
      expect(line).toMatchObject({
        at: '2026-01-02T00:00:00.000Z',
        user: 'ann',
        operation: 'read',
        outcome: reason === 'does not exist.' ? 'failed' : 'refused',
      })
    })
  }

  verifies('H-09', 'through a link is denied, and only the log names the target of the link', async () => {
    using fixture = createFilesFixture()
    expect(await errorMessage(fixture.files.read('ann', fixture.at('app/link.txt')))).toBe(
      `"${fixture.at('app/link.txt')}" ${outside}`,
    )
    expect(fixture.auditTexts()).toEqual(['ann read /app/link.txt refused outside, leads to /outside/secret.txt'])
  })

  it('escapes control characters of a path in the error', async () => {
    using fixture = createFilesFixture()
    expect(await errorMessage(fixture.files.read('ann', 'a\n\u001b[2J\u009b1m\u202e'))).toBe(
      '"a\\n\\u001b[2J\\u{9b}1m\\u{202e}" does not exist.',
    )
  })

  verifies('H-09', 'outside the allowed folders gives the same error for existing and missing files', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    const [existing, missing] = [at('outside/secret.txt'), at('outside/secreT.txt')]
    const errors = [await errorMessage(files.read('ann', existing)), await errorMessage(files.read('ann', missing))]
    expect(errors).toEqual([`"${existing}" ${outside}`, `"${missing}" ${outside}`])
  })

  verifies('H-09', 'outside the allowed folders is denied to every operation', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    for (const path of [at('app-evil/new'), at('app/linked/new'), at('app/../outside/new'), at('app/dangling.txt')]) {
      const works = [
        () => files.write('ann', path, 'x'),
        () => files.createDirectory('ann', path),
        () => files.list('ann', path),
      ]
      for (const work of works) expect(await errorMessage(work())).toBe(`${JSON.stringify(path)} ${outside}`)
    }
    expect(fixture.auditLines().every(({ outcome }) => outcome === 'refused')).toBe(true)
    expect(fixture.auditLines()).toHaveLength(12)
    expect([readdirSync(at('app-evil')), readdirSync(at('outside')).sort()]).toEqual([
      ['secret.txt'],
      ['deep', 'secret.txt'],
    ])
  })

  verifies('H-09', 'inside the allowed folders works by any path that leads there, and is logged', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    const hello = { path: at('app/hello.txt'), text: 'Hello.\n', size: 7 }
    for (const path of [
      at('app/hello.txt'),
      `${at('app')}//notes/.././hello.txt`,
      at('shortcut/hello.txt'),
      'hello.txt',
      './notes/../hello.txt',
    ])
      expect(await files.read('ann', path)).toMatchObject(hello)
    expect((await files.read('bob', at('app/inner/today.md'))).text).toBe('# Today\n')
    expect(fixture.auditTexts()).toEqual([
      'ann read /app/hello.txt allowed',
      'ann read /app//notes/.././hello.txt allowed leads to /app/hello.txt',
      'ann read /shortcut/hello.txt allowed leads to /app/hello.txt',
      'ann read hello.txt allowed leads to /app/hello.txt',
      'ann read ./notes/../hello.txt allowed leads to /app/hello.txt',
      'bob read /app/inner/today.md allowed leads to /app/notes/today.md',
    ])
  })

  verifies('H-09', 'without allowed folders is always denied', async () => {
    using fixture = createFilesFixture({ allow: [] })
    for (const path of [fixture.at('app/hello.txt'), 'hello.txt', '/', '.'])
      expect(await errorMessage(fixture.files.read('ann', path))).toContain(outside)
  })

  verifies('H-09', 'of a user with folders of their own is limited to those', async () => {
    using fixture = createFilesFixture()
    const { at, audit } = fixture
    const files = new FileAccess({
      allow: [at('app')],
      users: { ann: [at('ann')], eve: [], __proto__: [at('outside')] },
      write: false,
      audit,
      clock: () => 0,
    })
    const canRead = async (user: string, path: string): Promise<boolean> =>
      (await files.look(user, at(path))).status === 'there'
    const [app, ann] = ['app/hello.txt', 'ann/own.txt']
    expect([await canRead('ann', ann), await canRead('ann', app)]).toEqual([true, false])
    expect([await canRead('eve', ann), await canRead('eve', app)]).toEqual([false, false])
    expect([await canRead('bob', ann), await canRead('bob', app)]).toEqual([false, true])
    for (const user of ['__proto__', 'constructor', 'toString', ''])
      expect([await canRead(user, 'outside/secret.txt'), await canRead(user, app)]).toEqual([false, true])
  })

  verifies(
    'H-09',
    'to folders, pipes, devices, large files and binary files as text is denied without blocking',
    async () => {
      using fixture = createFilesFixture()
      const { files, at } = fixture
      execFileSync('mkfifo', [at('app/pipe')])
      writeFileSync(at('app/large.txt'), 'x'.repeat(4 * 1024 * 1024 + 1))
      writeFileSync(at('app/limit.txt'), 'x'.repeat(4 * 1024 * 1024))
      writeFileSync(at('app/binary.txt'), Buffer.from([0x50, 0x4b, 0]))
      writeFileSync(at('app/latin.txt'), Buffer.from([0xe4]))
      const reasons: Record<string, string> = {
        notes: 'is a folder, not a file.',
        pipe: 'is neither a file nor a folder.',
        'large.txt': 'is larger than 4194304 bytes.',
        'binary.txt': 'is not UTF-8 text.',
        'latin.txt': 'is not UTF-8 text.',
      }
      for (const [file, reason] of Object.entries(reasons))
        expect(await errorMessage(files.read('ann', at('app', file)))).toBe(`"${at('app', file)}" ${reason}`)
      expect((await files.read('ann', at('app/limit.txt'))).size).toBe(4_194_304)
      expect(await errorMessage(files.list('ann', at('app/hello.txt')))).toContain('is a file, not a folder.')
      const devices = new FileAccess({ allow: ['/dev', '/proc'], write: true, audit: fixture.audit, clock: () => 0 })
      expect(await errorMessage(devices.read('ann', '/dev/zero'))).toBe('"/dev/zero" is neither a file nor a folder.')
      expect(fixture.auditTexts().filter((line) => /pipe|zero/.test(line))).toEqual([
        'ann read /app/pipe allowed',
        'ann read /app/pipe refused not-a-file',
        'ann read /dev/zero allowed',
        'ann read /dev/zero refused not-a-file',
      ])
    },
  )

  it('to a file that reports size 0 reads its content up to the limit', async () => {
    using fixture = createFilesFixture()
    const files = new FileAccess({ allow: ['/proc/self'], write: false, audit: fixture.audit, clock: () => 0 })
    const { text, size } = await files.read('ann', '/proc/self/status')
    expect(text).toContain('Pid:')
    expect(size).toBe(Buffer.byteLength(text))
  })

  verifies('H-10', 'does not write unless writing is enabled', async () => {
    using fixture = createFilesFixture({ write: false })
    const { files, at } = fixture
    expect(await errorMessage(files.write('ann', at('app/new.txt'), 'x'))).toBe(
      `"${at('app/new.txt')}" cannot be written: writing is disabled. The server operator can enable it.`,
    )
    expect(existsSync(at('app/new.txt'))).toBe(false)
    expect(fixture.auditTexts()).toEqual(['ann write /app/new.txt refused writing-disabled'])
  })

  verifies('H-10', 'writes atomically, keeps permissions and leaves no temporary file', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    chmodSync(at('app/hello.txt'), 0o640)
    linkSync(at('app/hello.txt'), at('outside/same.txt'))
    expect(await files.write('ann', at('app/hello.txt'), 'Bye, Zoë.\n')).toMatchObject({
      path: at('app/hello.txt'),
      size: 11,
    })
    expect(await files.write('ann', 'fresh.txt', '')).toMatchObject({ path: at('app/fresh.txt'), size: 0 })
    expect([readFileSync(at('app/hello.txt'), 'utf8'), statSync(at('app/hello.txt')).mode & 0o777]).toEqual([
      'Bye, Zoë.\n',
      0o640,
    ])
    expect(readFileSync(at('outside/same.txt'), 'utf8')).toBe('Hello.\n')
    expect(readdirSync(at('app')).sort()).toEqual([
      'dangling.txt',
      'fresh.txt',
      'hello.txt',
      'inner',
      'link.txt',
      'linked',
      'loop',
      'notes',
    ])
    expect(fixture.auditTexts()).toEqual([
      'ann write /app/hello.txt allowed',
      'ann write fresh.txt allowed leads to /app/fresh.txt',
    ])
    expect(readFileSync(fixture.audit.file, 'utf8')).not.toContain('Zoë')
  })

  verifies('H-10', 'does not write over folders, beyond the size limit or into missing folders', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    expect(await errorMessage(files.write('ann', at('app/notes'), 'x'))).toContain('is a folder, not a file.')
    expect(await errorMessage(files.write('ann', at('app'), 'x'))).toContain('is a folder, not a file.')
    expect(await errorMessage(files.write('ann', at('app/hello.txt'), 'ü'.repeat(2 * 1024 * 1024 + 1)))).toContain(
      'is larger than 4194304 bytes.',
    )
    expect(await errorMessage(files.write('ann', at('app/none/new.txt'), 'x'))).toContain(
      'is in a folder that does not exist. Create the folder with create_directory first.',
    )
    expect(readFileSync(at('app/hello.txt'), 'utf8')).toBe('Hello.\n')
  })

  verifies('H-10', 'creates folders only inside the allowed folders', async () => {
    using fixture = createFilesFixture({ write: false })
    const { files, at } = fixture
    expect(await files.createDirectory('ann', at('app/a/b/c'))).toEqual({ path: at('app/a/b/c'), created: true })
    expect(await files.createDirectory('ann', at('app/a/b'))).toEqual({ path: at('app/a/b'), created: false })
    expect(await errorMessage(files.createDirectory('ann', at('app-new')))).toContain(outside)
    expect(await errorMessage(files.createDirectory('ann', at('app/linked/new')))).toContain(outside)
    expect(await errorMessage(files.createDirectory('ann', at('app/hello.txt')))).toContain('is a file, not a folder.')
    expect(await errorMessage(files.createDirectory('ann', at('app/hello.txt/new')))).toContain(
      'is a file, not a folder.',
    )
    expect([
      lstatSync(at('app/a/b/c')).isDirectory(),
      existsSync(at('app-new')),
      existsSync(at('outside/new')),
    ]).toEqual([true, false, false])
  })

  it('lists entries with their kind, and links without their target', async () => {
    using fixture = createFilesFixture()
    const { files, at } = fixture
    expect(await files.list('ann', at('app'))).toEqual({
      path: at('app'),
      entries: [
        { name: 'dangling.txt', kind: 'link' },
        { name: 'hello.txt', kind: 'file' },
        { name: 'inner', kind: 'link' },
        { name: 'link.txt', kind: 'link' },
        { name: 'linked', kind: 'link' },
        { name: 'loop', kind: 'link' },
        { name: 'notes', kind: 'directory' },
      ],
      total: 7,
    })
    mkdirSync(at('app/many'))
    for (let n = 0; n < 1_001; n++) writeFileSync(at(`app/many/${n}`), '')
    const { entries, total } = await files.list('ann', 'many')
    expect([entries.length, total]).toEqual([1_000, 1_001])
  })

  it('by look returns a status instead of an error', async () => {
    using fixture = createFilesFixture()
    const status = async (path: string): Promise<string> => (await fixture.files.look('ann', fixture.at(path))).status
    expect([await status('app/hello.txt'), await status('app/none.txt'), await status('outside/secret.txt')]).toEqual([
      'there',
      'missing',
      'refused',
    ])
  })

  verifies('H-09', 'to the audit log and to protected files is always denied', async () => {
    using fixture = createFilesFixture()
    const { at } = fixture
    symlinkSync(at('logs'), at('app/logs'))
    const files = new FileAccess({
      allow: [at()],
      write: true,
      protectedPaths: [at('app/memory.db'), at('app/notes')],
      audit: new AuditLog(at('logs/audit.log')),
      clock: () => 0,
    })
    const operations: readonly Operation[] = ['read', 'write', 'list']
    for (const file of [
      'logs/audit.log',
      'logs/audit.log.head',
      'logs/AUDIT.LOG.lock',
      'app/logs/audit.log',
      'app/memory.db',
      'app/memory.db-wal',
      'app/Notes/today.md',
    ])
      for (const operation of operations)
        expect(await errorMessage(files.authorize('ann', operation, at(file)))).toContain(
          'belongs to the server and is not accessible to clients.',
        )
    expect(await files.authorize('ann', 'read', at('app/hello.txt'))).toBe(at('app/hello.txt'))
  })

  for (const folder of ['', 'app\0', 'a'.repeat(5_000)])
    it(`rejects an invalid folder in allow: ${JSON.stringify(folder.slice(0, 5))}`, () => {
      const options = { allow: [folder], write: false, audit: new AuditLog('never-written.log'), clock: () => 0 }
      expect(() => new FileAccess(options)).toThrow(
        `allow is ${JSON.stringify(folder)}; it must be a list of paths of folders.`,
      )
    })
})
