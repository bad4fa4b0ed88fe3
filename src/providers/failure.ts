import { MemoryError } from '../domain/error.ts'
import { at, textAt } from './json.ts'

/** What somebody reading an error should look at, as it is called where it is set. */
export type Check = { readonly address: string; readonly key: string }

/** A provider's refusal: its status, the word it gave for it, and how often it was asked. */
export type Refusal = {
  readonly status: number
  readonly word: string
  readonly tries: number
  readonly model: string
  readonly check: Check
}

/** The error for an answer that is not a success. Says what to do; never repeats what the provider wrote, which may quote keys and messages. */
export function refused(where: string, refusal: Refusal): MemoryError {
  const said = refusal.word === '' ? `HTTP ${refusal.status}` : `HTTP ${refusal.status}, ${refusal.word}`
  const tried = refusal.tries > 1 ? ` after ${refusal.tries} tries` : ''
  return new MemoryError('upstream', `${where} ${explained(refusal, `(${said})${tried}`)}`, { status: refusal.status })
}

function explained({ status, word, model, check }: Refusal, said: string): string {
  if (status === 401 || status === 403) return `refused the key ${said}. Check ${check.key}.`
  if (status === 404)
    return `knows no model ${JSON.stringify(model)} or no such address ${said}. Check the model name and ${check.address}.`
  if (word === 'insufficient_quota')
    return `says the quota is used up ${said}. Check the plan and billing of the account behind ${check.key}.`
  if (status === 429) return `receives too many requests ${said}. Wait a while, or raise the limits of the account.`
  if (status >= 500) return `failed ${said}. Try again later; if it is your own server, look at its log.`
  if (status < 400) return `sends elsewhere ${said}. Give the final address: check ${check.address}.`
  return `refused the request ${said}. Check that the model takes what was sent.`
}

/** The error for no answer at all. */
export function unreachable(where: string, error: unknown, check: Check): MemoryError {
  const code = networkCode(error)
  const shown = code === '' ? '' : ` (${code})`
  return new MemoryError(
    'upstream',
    `No answer from ${where}${shown}. Is the server running? Check ${check.address}.`,
    { cause: error },
  )
}

/** The error for a connection that was lost while the reply was on its way. */
export const brokenOff = (where: string, error: unknown): MemoryError =>
  new MemoryError(
    'upstream',
    `The connection to ${where} broke off in the middle of the reply. Try again; if it is your own server, look at its log.`,
    {
      cause: error,
    },
  )

/** The error for a stream that closed before the reply was complete. */
export const endedEarly = (where: string): MemoryError =>
  new MemoryError('upstream', `The reply of ${where} ended early: the stream closed before it was complete. Try again.`)

/** The error for an answer that is no reply of a model. */
export const notAReply = (where: string, what: string): MemoryError =>
  new MemoryError(
    'upstream',
    `${where} sent ${what} instead of a reply. Check that the address is that of a model server.`,
  )

/** The error for a reply the provider withheld. */
export const withheld = (where: string, reason: string): MemoryError =>
  new MemoryError(
    'upstream',
    `${where} withheld the reply (${reason}). Put the question another way, or ask another model.`,
  )

/** The error a provider reports inside a stream or a JSON answer, if it does. */
export function reported(where: string, json: unknown): MemoryError | undefined {
  const error = at(json, 'error')
  if (typeof error !== 'string' && (typeof error !== 'object' || error === null)) return undefined
  const word = wordOf(json)
  return new MemoryError(
    'upstream',
    `${where} reported an error${word === '' ? '' : ` (${word})`} instead of going on. Try again later.`,
  )
}

/** The provider's word for an error, and the field it is about, if they are plain identifiers: free text is never taken over. */
export function wordOf(json: unknown): string {
  const error = at(json, 'error')
  const word = [textAt(error, 'code'), textAt(error, 'status'), textAt(error, 'type')].find(isWord) ?? ''
  const param = textAt(error, 'param')
  return isWord(param) && word !== '' ? `${word}: ${param}` : word
}

/** Letters and underscores only, so that no key and no sentence passes. */
const isWord = (text: string): boolean => /^[A-Za-z][A-Za-z_]{1,47}$/.test(text)

/** The system's code for a network failure, where the platform tells it. */
export function networkCode(error: unknown): string {
  const code = textAt(at(error, 'cause'), 'code')
  return /^[A-Z][A-Z0-9_]{1,47}$/.test(code) ? code : ''
}
