import { realpath } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { check, MemoryError } from '../../domain/error.ts'
import type { Clock } from '../../domain/ports.ts'
import type { Seen } from '../../handoff/references.ts'
import type { Audit } from './audit.ts'
import type { Outcome } from './chain.ts'
import { readText, writeText } from './contents.ts'
import { makeFolder, type Named, namesIn, type State, stateOf } from './folders.ts'
import { faultOf, isWithin, meanings, pathOf, placeOf } from './place.ts'
import { isForbidden, type Reason, reasonOf, refusal, told } from './refusal.ts'

export type Operation = 'read' | 'write' | 'create' | 'list' | 'stat'
export type FileText = {
  readonly path: string
  readonly text: string
  readonly size: number
  readonly modified: Millis
}
export type FileStat = State & { readonly path: string }
export type Listing = { readonly path: string; readonly entries: readonly Named[]; readonly total: number }

export type FileDeskOptions = {
  /** The folders everybody may use who is not named in `users`; with none, nothing can be read. Relative ones are where the process was started. */
  readonly allow: readonly string[]
  /** The folders of single users, instead of those of everybody. */
  readonly users?: Readonly<Record<string, readonly string[]>>
  /** Whether files may be written. */
  readonly write: boolean
  /** What is never for clients, with all beside it whose names begin the same, and all inside: the store, its key, the keys of the server. */
  readonly keep?: readonly string[]
  readonly audit: Audit
  readonly clock: Clock
}

/** How many names at the end of a path may be new: files go into folders that are there, folders anywhere inside. */
const mayLack: Readonly<Record<Operation, number>> = {
  read: 0,
  list: 0,
  stat: 0,
  write: 1,
  create: Number.POSITIVE_INFINITY,
}

type Asked = { readonly user: string; readonly operation: Operation; readonly path: string }
type Decision =
  | { readonly real: string; readonly reason?: undefined }
  | { readonly reason: Reason; readonly real?: string }

/**
 * Where clients get at files: only inside the folders their user may use, wherever links lead, and never without a line
 * in the audit log that is written before anything is done or told.
 *
 * @example
 * const desk = new FileDesk({ allow: ['/srv/app'], write: false, audit: new Audit('/var/lib/threadkeep/audit.log'), clock: Date.now })
 * const { text } = await desk.read('ann', '/srv/app/README.md')
 */
export class FileDesk {
  readonly #options: FileDeskOptions

  constructor(options: FileDeskOptions) {
    for (const folder of [options.allow, ...Object.values(options.users ?? {})].flat())
      check('allow', folder, faultOf(folder) === undefined, 'a list of paths of folders')
    this.#options = options
  }

  /** The real path that a user's path stands for, if the operation is allowed there; either way it is in the log. */
  async guard(user: string, operation: Operation, path: string): Promise<string> {
    const asked = { user, operation, path }
    const { reason, real } = await this.#decide(asked)
    const leads = real === undefined || real === path ? [] : [`leads to ${real}`]
    if (reason !== undefined) {
      await this.#note(asked, isForbidden(reason) ? 'refused' : 'failed', [reason, ...leads])
      throw refusal(reason, path)
    }
    await this.#note(asked, 'allowed', leads)
    return real
  }

  /** The text of a file. */
  read(user: string, path: string): Promise<FileText> {
    return this.#perform({ user, operation: 'read', path }, async (real) => ({ path: real, ...(await readText(real)) }))
  }

  /** As `read`, for those who go on without the file: one that is missing or refused is an answer, not an error. */
  async look(user: string, path: string): Promise<Seen> {
    try {
      return { status: 'there', ...(await this.read(user, path)) }
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error
      return { status: reasonOf(error) === 'missing' ? 'missing' : 'refused' }
    }
  }

  /** Replaces a file, or makes it in a folder that is there. */
  write(user: string, path: string, text: string): Promise<FileStat> {
    return this.#perform({ user, operation: 'write', path }, async (real) => ({
      path: real,
      kind: 'file',
      ...(await writeText(real, text)),
    }))
  }

  /** Makes a folder and those above it; one that is there already stays as it is. */
  createDirectory(user: string, path: string): Promise<{ readonly path: string; readonly created: boolean }> {
    return this.#perform({ user, operation: 'create', path }, async (real) => ({
      path: real,
      created: await makeFolder(real),
    }))
  }

  /** What is in a folder. */
  list(user: string, path: string): Promise<Listing> {
    return this.#perform({ user, operation: 'list', path }, async (real) => ({ path: real, ...(await namesIn(real)) }))
  }

  /** What stands at a path. */
  stat(user: string, path: string): Promise<FileStat> {
    return this.#perform({ user, operation: 'stat', path }, async (real) => ({ path: real, ...(await stateOf(real)) }))
  }

  /** What was allowed and then did not work, or turned out to be forbidden, is in the log once more. */
  async #perform<T>(asked: Asked, act: (real: string) => Promise<T>): Promise<T> {
    const real = await this.guard(asked.user, asked.operation, asked.path)
    try {
      return await act(real)
    } catch (error) {
      const reason = reasonOf(told(error, asked.path))
      await this.#note(asked, isForbidden(reason) ? 'refused' : 'failed', [reason])
      throw refusal(reason, asked.path, error)
    }
  }

  #note(asked: Asked, outcome: Outcome, why: readonly string[]): Promise<void> {
    const { audit, clock } = this.#options
    return audit.note({ at: clock(), ...asked, outcome, ...(why.length === 0 ? {} : { why: why.join(', ') }) })
  }

  async #decide({ user, operation, path }: Asked): Promise<Decision> {
    const fault = faultOf(path)
    if (fault !== undefined) return { reason: fault }
    if (operation === 'write' && !this.#options.write) return { reason: 'off' }
    const folders = await this.folders(user)
    const places = (await Promise.all(meanings(path, folders).map(placeOf))).filter((place) => place !== undefined)
    const inside = places.filter((place) => folders.some((folder) => isWithin(folder, pathOf(place))))
    // A relative path means the first folder that has it, and with none, the first folder.
    const place = inside.find(({ rest }) => rest.length === 0) ?? inside[0]
    if (place === undefined)
      return { reason: 'outside', ...(places[0] === undefined ? {} : { real: pathOf(places[0]) }) }
    const real = pathOf(place)
    if (await this.#isKept(real)) return { reason: 'kept', real }
    return place.rest.length > mayLack[operation]
      ? { reason: operation === 'write' ? 'homeless' : 'missing', real }
      : { real }
  }

  /** The folders a user may use, by their real paths; one that is not there allows nothing. Nobody's files are looked at, so it is not in the log. */
  async folders(user: string): Promise<readonly string[]> {
    const { allow, users = {} } = this.#options
    const folders = (Object.hasOwn(users, user) ? users[user] : undefined) ?? allow
    const real = await Promise.all(folders.map((folder) => realpath(resolve(folder)).catch(() => undefined)))
    return real.filter((folder) => folder !== undefined)
  }

  /** What the server itself lives on, and the log, which tells of other users. */
  async #isKept(real: string): Promise<boolean> {
    const { audit, keep = [] } = this.#options
    const kept = await Promise.all([audit.file, ...keep].map((file) => placeOf(resolve(file))))
    return kept.some((place) => place !== undefined && belongsTo(real, pathOf(place)))
  }
}

/** Whether a path is inside another, or beside it with a name that begins the same, as the most forgiving file system compares names. */
function belongsTo(path: string, kept: string): boolean {
  const [one, other] = [path, kept].map((text) => text.normalize('NFC').toLowerCase()) as [string, string]
  return isWithin(other, one) || (dirname(one) === dirname(other) && basename(one).startsWith(basename(other)))
}
