/** A system call as strace recorded it, from the line where it began to the line where it ended. */
export type Call = {
  readonly thread: string
  readonly name: string
  readonly args: string
  readonly result: string
  readonly from: number
  readonly to: number
}

/** Options under which a trace can be read here: whole data, as hexadecimal digits, with the paths of open files. */
export const recorded = (file: string, ...calls: readonly string[]): readonly string[] => [
  '--seccomp-bpf',
  ...['-o', file],
  ...['-y', '-xx'],
  ...['-s', '10000000'],
  ...['-e', `trace=${calls.join(',')}`],
]

/** Reads a trace; the calls are in the order in which they ended, and those that never did come last. */
export function callsOf(trace: string): readonly Call[] {
  const lines = trace.split('\n')
  const begun = new Map<string, Omit<Call, 'result' | 'to'>>()
  const calls: Call[] = []
  lines.forEach((line, at) => {
    const [, thread = '', text = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const [, name = '', args = '', rest = ''] =
      /^(?:<\.\.\. )?(\w+)(?:\(| resumed>)(.*?)(\) += .*| <unfinished \.\.\.>)$/.exec(text) ?? []
    if (name === '') return
    const before = text.startsWith('<...') ? begun.get(thread) : undefined
    const call = { thread, name, args: (before?.args ?? '') + args, from: before?.from ?? at }
    if (rest.startsWith(')')) calls.push({ ...call, result: rest.replace(/^\) += /, ''), to: at })
    else begun.set(thread, call)
    if (before !== undefined) begun.delete(thread)
  })
  return [...calls, ...[...begun.values()].map((call) => ({ ...call, result: '?', to: lines.length }))]
}

/** Whether a call did what it was asked to. */
export const succeeded = ({ result }: Call): boolean => !result.startsWith('-1') && result !== '?'

/** What the first argument is open on: a path, or `socket:[…]` and the like. */
export const targetOf = ({ args }: Call): string => plain(/^\d+<([^>]*)>/.exec(args)?.[1] ?? '').toString()

/** Every text and every piece of data among the arguments, in order. */
export function dataOf({ name, args }: Call): readonly Buffer[] {
  if (args.includes('"...')) throw new Error(`The data of ${name} is not whole in the trace`)
  return [...args.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, digits = '']) => plain(digits))
}

/** The numbers at the end of the arguments. */
export const numbersOf = ({ args }: Call): readonly number[] =>
  (/(?:, \d+)+$/.exec(args)?.[0] ?? '').split(', ').slice(1).map(Number)

const plain = (digits: string): Buffer => Buffer.from(digits.replaceAll('\\x', ''), 'hex')
