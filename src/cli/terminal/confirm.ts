import { MemoryError } from '../../domain/error.ts'
import { installInterruptHandler, interruptedError, releaseInterruptHandler } from './interrupt.ts'
import { type Line, printResult } from './output.ts'

export type ConfirmFlags = { readonly yes?: boolean; readonly dryRun?: boolean; readonly json?: boolean }

/** An operation that erases something, before it happens. */
export type ConfirmRequest = {
  /** JSON value that lists what would go. */
  readonly value: unknown
  /** The same as lines of text. */
  readonly lines: readonly Line[]
  /** Question to a user: `Delete these 4 messages for good?` */
  readonly question: string
  /** Consequence of not confirming: `Nothing was deleted.` */
  readonly otherwise: string
}

/**
 * Returns true if the user confirms an operation: with `--yes`, or in a terminal by answering the question below the
 * list of what would go. Without a terminal, prints the list and throws `unconfirmed`. `--dry-run` only prints it.
 */
export async function confirmOperation(flags: ConfirmFlags, request: ConfirmRequest): Promise<boolean> {
  const { value, lines, question, otherwise } = request
  if (flags.yes === true && flags.dryRun !== true) return true
  printResult(flags.json, value, lines)
  if (flags.dryRun === true) return false
  if (flags.json === true || process.stdin.isTTY !== true || process.stderr.isTTY !== true)
    throw new MemoryError('bad-option', `${otherwise} Add --yes to confirm.`, { param: 'yes' })
  if (await askUser(question)) return true
  process.stderr.write(`${otherwise}\n`)
  return false
}

/**
 * Asks a question in the terminal. Only the typed word yes confirms: single keys may have been pressed before the
 * question appeared. Throws `aborted` on Ctrl-C.
 */
async function askUser(question: string): Promise<boolean> {
  const { text, isCancel } = await import('@clack/prompts')
  // The prompt reads Ctrl-C as a key.
  releaseInterruptHandler()
  const answer = await text({ message: `${question} Type yes to confirm.`, placeholder: 'no', output: process.stderr })
  installInterruptHandler()
  if (isCancel(answer)) throw interruptedError(undefined, 'Interrupted. Nothing was changed.')
  return /^\s*yes\s*$/i.test(answer ?? '')
}
