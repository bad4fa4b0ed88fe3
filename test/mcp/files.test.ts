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
import { Audit } from '../../src/mcp/files/audit.ts'
import { FileDesk, type Operation } from '../../src/mcp/files/desk.ts'
import { verifies } from '../requirements/verifies.ts'
import { secret, stage } from './filesStage.ts'

/** What a client is told of a refusal. */
async function refused(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    (value) => expect.unreachable(`It gave ${JSON.stringify(value)}.`),
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(MemoryError)
  const { code, message, param } = error as MemoryError
  expect([code, param]).toEqual(['bad-option', 'path'])
  return message
}

const outside = 'is not in a folder you may use. list_directory without a path tells which those are.'
const name = 'is not a path: it must be text without NUL, at most 4,096 bytes long with names of at most 255.'

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
  ['a link that leads nowhere', (at) => at('app/dangling.txt'), outside],
  ['a link to itself', (at) => at('app/loop'), outside],
  ['something missing behind a link', (at) => at('app/linked/none/none.txt'), outside],
  ['something missing outside', (at) => at('outside/none.txt'), outside],
  ['another case of the folder', (at) => at('APP/hello.txt'), outside],
  ['another case of a file', (at) => at('app/HELLO.txt'), 'does not exist.'],
  ['something missing inside', (at) => at('app/none/none.txt'), 'does not exist.'],
  ['a file taken for a folder', (at) => at('app/hello.txt/x'), 'does not exist.'],
  ['a NUL', (at) => `${at('app/hello.txt')}\0.png`, name],
  ['a NUL that hides an extension', (at) => `${at('outside/secret.txt')}\0${at('app')}`, name],
  ['half a character', (at) => at('app/\ud83d'), name],
  ['a name that is too long', (at) => at(`app/${'a'.repeat(256)}`), name],
  ['a path that is too long', (at) => at(`app/${'a/'.repeat(2_100)}b`), name],
  ['nothing', () => '', name],
  ['the root', () => '/', outside],
  ['a device', () => '/dev/zero', outside],
  ['the process itself', () => '/proc/self/environ', outside],
  ['a home folder', () => '~/.ssh/id_ed25519', 'does not exist.'],
  ['an address', (at) => `file://${at('app/hello.txt')}`, 'does not exist.'],
  ['percent signs', (at) => `${at('app')}/%2e%2e/outside/secret.txt`, 'does not exist.'],
]

describe('files', () => {
  for (const [what, path, reason] of attacks) {
    verifies('H-09', `are not read by ${what}, and it is in the log`, async () => {
      using place = stage()
      const asked = path(place.at)
      const message = await refused(place.desk.read('ann', asked))
      expect(message.endsWith(` ${reason}`)).toBe(true)
      expect(message).not.toContain(secret)
      const [line, ...more] = place.lines()
      expect(more).toEqual([])
      expect(line).toMatchObject({
        at: '2026-01-02T00:00:00.000Z',
        user: 'ann',
        operation: 'read',
        outcome: reason === 'does not exist.' ? 'failed' : 'refused',
      })
    })
  }

  verifies('H-09', 'behind a link are refused without a word on where it leads, which the log knows', async () => {
    using place = stage()
    expect(await refused(place.desk.read('ann', place.at('app/link.txt')))).toBe(
      `"${place.at('app/link.txt')}" ${outside}`,
    )
    expect(place.told()).toEqual(['ann read /app/link.txt refused outside, leads to /outside/secret.txt'])
  })

  it('are named in a refusal without what a terminal would obey', async () => {
    using place = stage()
    expect(await refused(place.desk.read('ann', 'a\n\u001b[2J\u009b1m\u202e'))).toBe(
      '"a\\n\\u001b[2J\\u{9b}1m\\u{202e}" does not exist.',
    )
  })

  verifies('H-09', 'outside are refused in the same words whether they exist or not', async () => {
    using place = stage()
    const [there, missing] = [place.at('outside/secret.txt'), place.at('outside/secreT.txt')]
    const words = [await refused(place.desk.read('ann', there)), await refused(place.desk.read('ann', missing))]
    expect(words).toEqual([`"${there}" ${outside}`, `"${missing}" ${outside}`])
  })

  verifies('H-09', 'are refused to every operation alike', async () => {
    using place = stage()
    const { desk, at } = place
    for (const path of [at('app-evil/new'), at('app/linked/new'), at('app/../outside/new'), at('app/dangling.txt')]) {
      const works = [
        () => desk.write('ann', path, 'x'),
        () => desk.createDirectory('ann', path),
        () => desk.list('ann', path),
        () => desk.stat('ann', path),
      ]
      for (const work of works) expect(await refused(work())).toBe(`${JSON.stringify(path)} ${outside}`)
    }
    expect(place.lines().every(({ outcome }) => outcome === 'refused')).toBe(true)
    expect(place.lines()).toHaveLength(16)
    expect([readdirSync(at('app-evil')), readdirSync(at('outside')).sort()]).toEqual([
      ['secret.txt'],
      ['deep', 'secret.txt'],
    ])
  })

  verifies(
    'H-09',
    'are read inside the folders of the list, by any path that leads there, and it is in the log',
    async () => {
      using place = stage()
      const { desk, at } = place
      const hello = { path: at('app/hello.txt'), text: 'Hello.\n', size: 7 }
      for (const path of [
        at('app/hello.txt'),
        `${at('app')}//notes/.././hello.txt`,
        at('shortcut/hello.txt'),
        'hello.txt',
        './notes/../hello.txt',
      ])
        expect(await desk.read('ann', path)).toMatchObject(hello)
      expect((await desk.read('bob', at('app/inner/today.md'))).text).toBe('# Today\n')
      expect(place.told()).toEqual([
        'ann read /app/hello.txt allowed',
        'ann read /app//notes/.././hello.txt allowed leads to /app/hello.txt',
        'ann read /shortcut/hello.txt allowed leads to /app/hello.txt',
        'ann read hello.txt allowed leads to /app/hello.txt',
        'ann read ./notes/../hello.txt allowed leads to /app/hello.txt',
        'bob read /app/inner/today.md allowed leads to /app/notes/today.md',
      ])
    },
  )

  verifies('H-09', 'cannot be read at all where nothing is allowed', async () => {
    using place = stage({ allow: [] })
    for (const path of [place.at('app/hello.txt'), 'hello.txt', '/', '.'])
      expect(await refused(place.desk.read('ann', path))).toContain(outside)
  })

  verifies('H-09', 'are allowed per user: a list of one’s own takes the place of everybody’s', async () => {
    using place = stage()
    const { at, audit } = place
    const desk = new FileDesk({
      allow: [at('app')],
      users: { ann: [at('ann')], eve: [], __proto__: [at('outside')] },
      write: false,
      audit,
      clock: () => 0,
    })
    const may = async (user: string, path: string): Promise<boolean> =>
      (await desk.look(user, at(path))).status === 'there'
    const [app, ann] = ['app/hello.txt', 'ann/own.txt']
    expect([await may('ann', ann), await may('ann', app)]).toEqual([true, false])
    expect([await may('eve', ann), await may('eve', app)]).toEqual([false, false])
    expect([await may('bob', ann), await may('bob', app)]).toEqual([false, true])
    for (const user of ['__proto__', 'constructor', 'toString', ''])
      expect([await may(user, 'outside/secret.txt'), await may(user, app)]).toEqual([false, true])
  })

  verifies(
    'H-09',
    'that are no files are refused at once: folders, pipes, devices, what is too large or not text',
    async () => {
      using place = stage()
      const { desk, at } = place
      execFileSync('mkfifo', [at('app/pipe')])
      writeFileSync(at('app/large.txt'), 'x'.repeat(4 * 1024 * 1024 + 1))
      writeFileSync(at('app/limit.txt'), 'x'.repeat(4 * 1024 * 1024))
      writeFileSync(at('app/binary.txt'), Buffer.from([0x50, 0x4b, 0]))
      writeFileSync(at('app/latin.txt'), Buffer.from([0xe4]))
      const reasons: Record<string, string> = {
        notes: 'is a folder, not a file.',
        pipe: 'is neither a file nor a folder.',
        'large.txt': 'is larger than 4194304 bytes.',
        'binary.txt': 'is not text in UTF-8.',
        'latin.txt': 'is not text in UTF-8.',
      }
      for (const [file, reason] of Object.entries(reasons))
        expect(await refused(desk.read('ann', at('app', file)))).toBe(`"${at('app', file)}" ${reason}`)
      expect((await desk.read('ann', at('app/limit.txt'))).size).toBe(4_194_304)
      expect(await refused(desk.list('ann', at('app/hello.txt')))).toContain('is a file, not a folder.')
      const devices = new FileDesk({ allow: ['/dev', '/proc'], write: true, audit: place.audit, clock: () => 0 })
      expect(await refused(devices.read('ann', '/dev/zero'))).toBe('"/dev/zero" is neither a file nor a folder.')
      expect(place.told().filter((line) => /pipe|zero/.test(line))).toEqual([
        'ann read /app/pipe allowed',
        'ann read /app/pipe refused device',
        'ann read /dev/zero allowed',
        'ann read /dev/zero refused device',
      ])
    },
  )

  it('that claim to be empty are read no further than allowed', async () => {
    using place = stage()
    const desk = new FileDesk({ allow: ['/proc/self'], write: false, audit: place.audit, clock: () => 0 })
    const { text, size } = await desk.read('ann', '/proc/self/status')
    expect(text).toContain('Pid:')
    expect(size).toBe(Buffer.byteLength(text))
  })

  verifies('H-10', 'are not written unless that is configured', async () => {
    using place = stage({ write: false })
    const { desk, at } = place
    expect(await refused(desk.write('ann', at('app/new.txt'), 'x'))).toBe(
      `"${at('app/new.txt')}" may not be written: writing is off. Whoever runs the server can allow it.`,
    )
    expect(existsSync(at('app/new.txt'))).toBe(false)
    expect(place.told()).toEqual(['ann write /app/new.txt refused off'])
  })

  verifies('H-10', 'are written whole, with the rights they had, and nothing else is left behind', async () => {
    using place = stage()
    const { desk, at } = place
    chmodSync(at('app/hello.txt'), 0o640)
    linkSync(at('app/hello.txt'), at('outside/same.txt'))
    expect(await desk.write('ann', at('app/hello.txt'), 'Bye, Zoë.\n')).toMatchObject({
      path: at('app/hello.txt'),
      kind: 'file',
      size: 11,
    })
    expect(await desk.write('ann', 'fresh.txt', '')).toMatchObject({ path: at('app/fresh.txt'), size: 0 })
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
    expect(place.told()).toEqual([
      'ann write /app/hello.txt allowed',
      'ann write fresh.txt allowed leads to /app/fresh.txt',
    ])
    expect(readFileSync(place.audit.file, 'utf8')).not.toContain('Zoë')
  })

  verifies('H-10', 'are not written over folders, past the limit or into folders that are not there', async () => {
    using place = stage()
    const { desk, at } = place
    expect(await refused(desk.write('ann', at('app/notes'), 'x'))).toContain('is a folder, not a file.')
    expect(await refused(desk.write('ann', at('app'), 'x'))).toContain('is a folder, not a file.')
    expect(await refused(desk.write('ann', at('app/hello.txt'), 'ü'.repeat(2 * 1024 * 1024 + 1)))).toContain(
      'is larger than 4194304 bytes.',
    )
    expect(await refused(desk.write('ann', at('app/none/new.txt'), 'x'))).toContain(
      'is in a folder that does not exist. Make that with create_directory first.',
    )
    expect(readFileSync(at('app/hello.txt'), 'utf8')).toBe('Hello.\n')
  })

  verifies('H-10', 'get new folders only under the folders of the list', async () => {
    using place = stage({ write: false })
    const { desk, at } = place
    expect(await desk.createDirectory('ann', at('app/a/b/c'))).toEqual({ path: at('app/a/b/c'), created: true })
    expect(await desk.createDirectory('ann', at('app/a/b'))).toEqual({ path: at('app/a/b'), created: false })
    expect(await refused(desk.createDirectory('ann', at('app-new')))).toContain(outside)
    expect(await refused(desk.createDirectory('ann', at('app/linked/new')))).toContain(outside)
    expect(await refused(desk.createDirectory('ann', at('app/hello.txt')))).toContain('is a file, not a folder.')
    expect(await refused(desk.createDirectory('ann', at('app/hello.txt/new')))).toContain('is a file, not a folder.')
    expect([
      lstatSync(at('app/a/b/c')).isDirectory(),
      existsSync(at('app-new')),
      existsSync(at('outside/new')),
    ]).toEqual([true, false, false])
  })

  it('are listed with what they are, links without where they lead', async () => {
    using place = stage()
    const { desk, at } = place
    expect(await desk.list('ann', at('app'))).toEqual({
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
    const { entries, total } = await desk.list('ann', 'many')
    expect([entries.length, total]).toEqual([1_000, 1_001])
    expect(await desk.stat('ann', at('app/hello.txt'))).toMatchObject({ kind: 'file', size: 7 })
  })

  it('look the same to those who go on without them', async () => {
    using place = stage()
    const status = async (path: string): Promise<string> => (await place.desk.look('ann', place.at(path))).status
    expect([await status('app/hello.txt'), await status('app/none.txt'), await status('outside/secret.txt')]).toEqual([
      'there',
      'missing',
      'refused',
    ])
  })

  verifies('H-09', 'of the audit log and of the server itself are nobody’s, wherever they are', async () => {
    using place = stage()
    const { at } = place
    symlinkSync(at('logs'), at('app/logs'))
    const desk = new FileDesk({
      allow: [at()],
      write: true,
      keep: [at('app/memory.db'), at('app/notes')],
      audit: new Audit(at('logs/audit.log')),
      clock: () => 0,
    })
    const operations: readonly Operation[] = ['read', 'write', 'stat']
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
        expect(await refused(desk.guard('ann', operation, at(file)))).toContain(
          'belongs to the server itself and is not for clients.',
        )
    expect(await desk.guard('ann', 'read', at('app/hello.txt'))).toBe(at('app/hello.txt'))
  })

  for (const folder of ['', 'app\0', 'a'.repeat(5_000)])
    it(`are not allowed by what is no path: ${JSON.stringify(folder.slice(0, 5))}`, () => {
      const options = { allow: [folder], write: false, audit: new Audit('never-written.log'), clock: () => 0 }
      expect(() => new FileDesk(options)).toThrow(
        `allow is ${JSON.stringify(folder)}; it must be a list of paths of folders.`,
      )
    })
})
