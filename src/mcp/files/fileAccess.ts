import { realpath } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { Millis } from '../../domain/entry.ts'
import { checkOption, MemoryError } from '../../domain/error.ts'
import type { Clock } from '../../domain/ports.ts'
import type { FileInspection } from '../../handoff/fileReferences.ts'
import type { FileInspector } from '../../handoff/settings.ts'
import type { AuditLog } from './audit.ts'
import type { Outcome } from './auditChain.ts'
import { type FileErrorReason, fileError, isForbidden, reasonOf, toFileError } from './fileErrors.ts'
import {
  candidatePaths,
  createFolder,
  type FileContents,
  type FolderEntry,
  isWithin,
  listFolder,
  readText,
  resolvePath,
  toFullPath,
  validatePath,
  writeText,
} from './operations.ts'

export type Operation = 'read' | 'write' | 'create' | 'list'
export type FileText = FileContents & { readonly path: string }
export type WrittenFile = { readonly path: string; readonly size: number; readonly modified: Millis }
export type FolderListing = { readonly path: string; readonly entries: readonly FolderEntry[]; readonly total: number }

export type FileAccessOptions = {
  /** Folders of users that are not in `users`; none by default. Relative paths start at the working directory. */
  readonly allow: readonly string[]
  /** Folders of individual users, in place of `allow`. */
  readonly users?: Readonly<Record<string, readonly string[]>>
  /** Enables `write`. */
  readonly write: boolean
  /**
   * Paths that no client may use, such as the store and its key, with everything inside them and every sibling whose
   * name starts the same.
   */
  readonly protectedPaths?: readonly string[]
  readonly audit: AuditLog
  readonly clock: Clock
}

/** Number of trailing path names that may not exist yet. */
const maxMissingNames: Readonly<Record<Operation, number>> = {
  read: 0,
  list: 0,
  write: 1,
  create: Number.POSITIVE_INFINITY,
}

type FileRequest = { readonly user: string; readonly operation: Operation; readonly path: string }
type Decision =
  | { readonly real: string; readonly reason?: undefined }
  | { readonly reason: FileErrorReason; readonly real?: string }

/**
 * File access for clients, restricted to the folders of their user after all links are resolved. Every operation is in
 * the audit log before it is performed or refused.
 *
 * @example
 * const files = new FileAccess({ allow: ['/srv/app'], write: false, audit: new AuditLog('/var/lib/threadkeep/audit.log'), clock: Date.now })
 * const { text } = await files.read('ann', '/srv/app/README.md')
 */
export class FileAccess implements FileInspector {
  readonly #options: FileAccessOptions

  constructor(options: FileAccessOptions) {
    for (const folder of [options.allow, ...Object.values(options.users ?? {})].flat())
      checkOption('allow', folder, validatePath(folder) === undefined, 'a list of paths of folders')
    this.#options = options
  }

  /** Returns the real path if the operation is allowed, and throws otherwise. Both are logged. */
  async authorize(user: string, operation: Operation, path: string): Promise<string> {
    const request = { user, operation, path }
    const { reason, real } = await this.#decide(request)
    const target = real === undefined || real === path ? [] : [`leads to ${real}`]
    if (reason !== undefined) {
      await this.#log(request, isForbidden(reason) ? 'refused' : 'failed', [reason, ...target])
      throw fileError(reason, path)
    }
    await this.#log(request, 'allowed', target)
    return real
  }

  read(user: string, path: string): Promise<FileText> {
    return this.#perform({ user, operation: 'read', path }, async (real) => ({ path: real, ...(await readText(real)) }))
  }

  /** Reads a file, and returns a status instead of throwing if it is missing or refused. */
  async look(user: string, path: string): Promise<FileInspection> {
    try {
      return { status: 'there', ...(await this.read(user, path)) }
    } catch (error) {
      if (!(error instanceof MemoryError)) throw error
      return { status: reasonOf(error) === 'missing' ? 'missing' : 'refused' }
    }
  }

  /** Replaces a file, or creates it in an existing folder. */
  write(user: string, path: string, text: string): Promise<WrittenFile> {
    return this.#perform({ user, operation: 'write', path }, async (real) => ({
      path: real,
      ...(await writeText(real, text)),
    }))
  }

  /** Creates a folder and its missing ancestors. An existing folder is left unchanged. */
  createDirectory(user: string, path: string): Promise<{ readonly path: string; readonly created: boolean }> {
    return this.#perform({ user, operation: 'create', path }, async (real) => ({
      path: real,
      created: await createFolder(real),
    }))
  }

  list(user: string, path: string): Promise<FolderListing> {
    return this.#perform({ user, operation: 'list', path }, async (real) => ({
      path: real,
      ...(await listFolder(real)),
    }))
  }

  /** Returns the real paths of a user's folders, without those that do not exist. Not logged: no file is accessed. */
  async allowedFolders(user: string): Promise<readonly string[]> {
    const { allow, users = {} } = this.#options
    const folders = (Object.hasOwn(users, user) ? users[user] : undefined) ?? allow
    const real = await Promise.all(folders.map((folder) => realpath(resolve(folder)).catch(() => undefined)))
    return real.filter((folder) => folder !== undefined)
  }

  /** Adds a second log line if an allowed operation fails or turns out to be forbidden. */
  async #perform<T>(request: FileRequest, operate: (real: string) => Promise<T>): Promise<T> {
    const real = await this.authorize(request.user, request.operation, request.path)
    try {
      return await operate(real)
    } catch (error) {
      const reason = reasonOf(toFileError(error, request.path))
      await this.#log(request, isForbidden(reason) ? 'refused' : 'failed', [reason])
      throw fileError(reason, request.path, error)
    }
  }

  #log(request: FileRequest, outcome: Outcome, why: readonly string[]): Promise<void> {
    const { audit, clock } = this.#options
    return audit.append({ at: clock(), ...request, outcome, ...(why.length === 0 ? {} : { why: why.join(', ') }) })
  }

  async #decide({ user, operation, path }: FileRequest): Promise<Decision> {
    const invalid = validatePath(path)
    if (invalid !== undefined) return { reason: invalid }
    if (operation === 'write' && !this.#options.write) return { reason: 'writing-disabled' }
    const folders = await this.allowedFolders(user)
    const resolved = (await Promise.all(candidatePaths(path, folders).map(resolvePath))).filter(
      (candidate) => candidate !== undefined,
    )
    const inside = resolved.filter((candidate) => folders.some((folder) => isWithin(folder, toFullPath(candidate))))
    // A relative path stands for the first folder in which it exists, else for the first folder.
    const chosen = inside.find(({ missing }) => missing.length === 0) ?? inside[0]
    if (chosen === undefined)
      return { reason: 'outside', ...(resolved[0] === undefined ? {} : { real: toFullPath(resolved[0]) }) }
    const real = toFullPath(chosen)
    if (await this.#isProtected(real)) return { reason: 'protected', real }
    return chosen.missing.length > maxMissingNames[operation]
      ? { reason: operation === 'write' ? 'missing-parent' : 'missing', real }
      : { real }
  }

  /** The audit log is protected too, because it names other users. */
  async #isProtected(real: string): Promise<boolean> {
    const { audit, protectedPaths = [] } = this.#options
    const resolved = await Promise.all([audit.file, ...protectedPaths].map((file) => resolvePath(resolve(file))))
    return resolved.some((path) => path !== undefined && isInsideOrSibling(real, toFullPath(path)))
  }
}

/** Compares names case-insensitively and normalized, as the most lenient file systems do. */
function isInsideOrSibling(path: string, protectedPath: string): boolean {
  const [one, other] = [path, protectedPath].map((text) => text.normalize('NFC').toLowerCase()) as [string, string]
  return isWithin(other, one) || (dirname(one) === dirname(other) && basename(one).startsWith(basename(other)))
}
