import { foundIn } from './canary.ts'
import { type Call, dataOf, succeeded, targetOf } from './trace.ts'

/** Every call by which a program can put something where it outlives it, or hand it to another program; those a machine does not have are left out. */
export const writing = [
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

/** What is handed to the kernel through a ring in shared memory is no call of its own; refused one, programs make calls again. */
export const withoutRings = ['-e', 'inject=io_uring_setup:error=ENOSYS']

/** What a program did to the world outside of it. */
export type Writings = {
  /** Regular files that were opened to be written to, made, written to or mapped, each once. */
  readonly files: readonly string[]
  /** Where the texts were written to or handed on, with their form. */
  readonly leaks: readonly string[]
  /** Programs that were started. */
  readonly programs: number
}

/** Reads a trace for what was written, and for any of these texts in it. What goes to a client over the network is its own. */
export function writingsOf(calls: readonly Call[], texts: readonly string[]): Writings {
  const done = calls.filter(succeeded)
  if (done.some(({ name }) => name === 'io_uring_setup'))
    throw new Error('A ring was set up; what is written through it cannot be seen')
  // The first one is the program itself.
  const [, ...programs] = done.filter(({ name }) => name.startsWith('execve'))
  const written = new Map<string, Buffer[]>()
  for (const call of done)
    if (!isToClient(call)) written.set(whither(call), [...(written.get(whither(call)) ?? []), ...dataOf(call)])
  return {
    files: [...new Set(done.flatMap(fileOf))].sort(),
    leaks: [...written].flatMap(([where, data]) =>
      foundIn(Buffer.concat(data), texts).map((form) => `${where}: ${form}`),
    ),
    programs: programs.length,
  }
}

/** Data that goes to one place is read as one, however many calls brought it there. */
const whither = (call: Call): string =>
  call.name.startsWith('execve') ? 'arguments of a program' : targetOf(call) || call.name

/** Sockets other than the three streams a program is given. */
const isToClient = (call: Call): boolean => targetOf(call).startsWith('socket:') && !/^[012]</.test(call.args)

/** The file a call makes or changes, if it is one. */
function fileOf(call: Call): readonly string[] {
  const { name, args } = call
  const [text] = dataOf(call)
  if (/^open/.test(name)) return /O_WRONLY|O_RDWR|O_CREAT|O_TRUNC/.test(args) ? regular(String(text)) : []
  if (name === 'mmap') return /PROT_WRITE/.test(args) && /MAP_SHARED/.test(args) ? regular(mapped(args)) : []
  if (/^(execve|send|io_uring)/.test(name)) return []
  return /^\d+</.test(args) ? regular(targetOf(call)) : regular(String(text))
}

/** A mapping names its file last. */
const mapped = (args: string): string =>
  targetOf({ args: /\d+<[^>]*>, (?:0x)?[0-9a-f]+$/.exec(args)?.[0] ?? '' } as Call)

const regular = (path: string): readonly string[] =>
  /^(\/dev\/(null|tty|pts\/\d+)|[a-z_]+:.*|)$/.test(path) ? [] : [path]
