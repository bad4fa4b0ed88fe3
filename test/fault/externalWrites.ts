import { findEncodings } from './canary.ts'
import { dataOf, pathOf, type SystemCall, succeeded } from './straceOutput.ts'

/** System calls that store data outside the process or pass it to another program; `?` makes strace ignore unknown ones. */
export const writingCalls = [
  ...[
    'open',
    'openat',
    'openat2',
    'creat',
    'write',
    'writev',
    'pwrite64',
    'pwritev',
    'pwritev2',
    'sendfile',
    'copy_file_range',
    'splice',
    'vmsplice',
  ],
  ...[
    'rename',
    'renameat',
    'renameat2',
    'link',
    'linkat',
    'symlink',
    'symlinkat',
    'mkdir',
    'mkdirat',
    'mknod',
    'mknodat',
    'setxattr',
    'fsetxattr',
  ],
  ...['truncate', 'ftruncate', 'fallocate', 'mmap', 'execve', 'execveat', 'sendto', 'sendmsg', 'io_uring_setup'],
].map((name) => `?${name}`)

/** Makes io_uring unavailable: strace cannot see its writes, and programs fall back to system calls. */
export const withoutIoUring = ['-e', 'inject=io_uring_setup:error=ENOSYS']

/** Everything a program wrote outside its own memory. */
export type ExternalWrites = {
  /** Regular files that were opened for writing, created, written to or mapped; without duplicates. */
  readonly files: readonly string[]
  /** Targets that received one of the texts, with its encoding. */
  readonly leaks: readonly string[]
  /** Number of started programs. */
  readonly programs: number
}

/** Collects the writes of a trace and searches them for the texts. Responses to network clients are ignored. */
export function collectWrites(calls: readonly SystemCall[], texts: readonly string[]): ExternalWrites {
  const completed = calls.filter(succeeded)
  if (completed.some(({ name }) => name === 'io_uring_setup'))
    throw new Error('io_uring was set up; its writes cannot be traced')
  // The first execve starts the traced program itself.
  const [, ...programs] = completed.filter(({ name }) => name.startsWith('execve'))
  const written = new Map<string, Buffer[]>()
  for (const call of completed)
    if (!isToClient(call))
      written.set(destinationOf(call), [...(written.get(destinationOf(call)) ?? []), ...dataOf(call)])
  return {
    files: [...new Set(completed.flatMap(filesChangedBy))].sort(),
    leaks: [...written].flatMap(([destination, data]) =>
      findEncodings(Buffer.concat(data), texts).map((encoding) => `${destination}: ${encoding}`),
    ),
    programs: programs.length,
  }
}

/** Data for one destination is searched as a whole, because a text may be split over several calls. */
const destinationOf = (call: SystemCall): string =>
  call.name.startsWith('execve') ? 'arguments of a program' : pathOf(call) || call.name

/** True for sockets other than stdin, stdout and stderr. */
const isToClient = (call: SystemCall): boolean => pathOf(call).startsWith('socket:') && !/^[012]</.test(call.args)

/** Returns the regular file a call creates or changes, if any. */
function filesChangedBy(call: SystemCall): readonly string[] {
  const { name, args } = call
  const [text] = dataOf(call)
  if (/^open/.test(name)) return /O_WRONLY|O_RDWR|O_CREAT|O_TRUNC/.test(args) ? regularFile(String(text)) : []
  if (name === 'mmap') return /PROT_WRITE/.test(args) && /MAP_SHARED/.test(args) ? regularFile(mappedFile(args)) : []
  if (/^(execve|send|io_uring)/.test(name)) return []
  return /^\d+</.test(args) ? regularFile(pathOf(call)) : regularFile(String(text))
}

/** mmap has its file descriptor in the second last argument. */
const mappedFile = (args: string): string =>
  pathOf({ args: /\d+<[^>]*>, (?:0x)?[0-9a-f]+$/.exec(args)?.[0] ?? '' } as SystemCall)

const regularFile = (path: string): readonly string[] =>
  /^(\/dev\/(null|tty|pts\/\d+)|[a-z_]+:.*|)$/.test(path) ? [] : [path]
