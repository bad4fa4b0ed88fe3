/** A system call recorded by strace, with the numbers of the lines where it started and ended. */
export type SystemCall = {
  readonly thread: string
  readonly name: string
  readonly args: string
  readonly result: string
  readonly startLine: number
  readonly endLine: number
}

/** strace options for a trace that `parseTrace` can read: complete data as hexadecimal digits, and the paths of open files. */
export const traceOptions = (file: string, ...calls: readonly string[]): readonly string[] => [
  '--seccomp-bpf',
  ...['-o', file],
  ...['-y', '-xx'],
  ...['-s', '10000000'],
  ...['-e', `trace=${calls.join(',')}`],
]

/** Parses a trace. Calls are ordered by their end; unfinished ones come last. */
export function parseTrace(trace: string): readonly SystemCall[] {
  const lines = trace.split('\n')
  const unfinished = new Map<string, Omit<SystemCall, 'result' | 'endLine'>>()
  const calls: SystemCall[] = []
  lines.forEach((line, lineNumber) => {
    const [, thread = '', text = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, name = '', args = '', rest = ''] =
      /^(?:<\.\.\. )?(\w+)(?:\(| resumed>)(.*?)(\) += .*| <unfinished \.\.\.>)$/.exec(text) ?? []
    if (name === '') return
    const started = text.startsWith('<...') ? unfinished.get(thread) : undefined
    const call = { thread, name, args: (started?.args ?? '') + args, startLine: started?.startLine ?? lineNumber }
    if (rest.startsWith(')')) calls.push({ ...call, result: rest.replace(/^\) += /, ''), endLine: lineNumber })
    else unfinished.set(thread, call)
    if (started !== undefined) unfinished.delete(thread)
  })
  return [...calls, ...[...unfinished.values()].map((call) => ({ ...call, result: '?', endLine: lines.length }))]
}

export const succeeded = ({ result }: SystemCall): boolean => !result.startsWith('-1') && result !== '?'

/** Path of the file descriptor in the first argument, or `socket:[…]` and the like. */
export const pathOf = ({ args }: SystemCall): string => decodeHex(/^\d+<([^>]*)>/.exec(args)?.[1] ?? '').toString()

/** Decodes all string arguments, in order. */
export function dataOf({ name, args }: SystemCall): readonly Buffer[] {
  if (args.includes('"...')) throw new Error(`The data of ${name} is truncated in the trace`)
  return [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, digits = '']) => decodeHex(digits))
}

/** Parses the numbers at the end of the arguments. */
export const numbersOf = ({ args }: SystemCall): readonly number[] =>
  (/(?:, \d+)+$/.exec(args)?.[0] ?? '').split(', ').slice(1).map(Number)

const decodeHex = (digits: string): Buffer => Buffer.from(digits.replaceAll('\\x', ''), 'hex')
