import { crc32 } from 'node:zlib'
import { seededRandom } from './random.ts'

/** An operation of a writer. Its id is the operation id it is stored under. */
export type Operation =
  /** Appends messages; with a fact, which is stored in the same commit. */
  | {
      readonly kind: 'append'
      readonly id: string
      readonly session: string
      readonly messages: number
      readonly withFact: boolean
    }
  /** Erases a message that was acknowledged to the same caller. */
  | { readonly kind: 'eraseMessage'; readonly id: string; readonly session: string; readonly message: string }
  | { readonly kind: 'eraseSession'; readonly id: string; readonly session: string }
  /** Reads a number, adds one and writes it back with compare-and-set. */
  | { readonly kind: 'increment'; readonly id: string; readonly session: string }
  /** Replaces the last message of an append, which was acknowledged to the same caller, by one of the same length. */
  | {
      readonly kind: 'replace'
      readonly id: string
      readonly session: string
      readonly message: string
      readonly target: string
      readonly index: number
    }
  /** Writes a row of a table under a name that only this caller uses. */
  | { readonly kind: 'putRow'; readonly id: string; readonly session: string; readonly row: string }
  /** Imports a bundle of two sessions: this one, and another of the same name with `importedSuffix`. */
  | { readonly kind: 'import'; readonly id: string; readonly session: string }

/** An operation whose message to erase or replace is not known yet: it is the last one of the append `target`. */
export type PlannedOperation =
  | Exclude<Operation, { kind: 'eraseMessage' | 'replace' }>
  | Omit<Extract<Operation, { kind: 'replace' }>, 'message'>
  | { readonly kind: 'eraseMessage'; readonly id: string; readonly session: string; readonly target: string }

export type PlanOptions = {
  readonly seed: number
  readonly steps: number
  /** Erases messages and sessions in between; otherwise increments a counter instead. */
  readonly withErasure: boolean
  /** Replaces messages, writes rows and imports bundles in between, too. */
  readonly withOthers: boolean
}

/** Session of the counter. */
export const counterSession = 'fault:counted'
/** Stands for the rows of the table. */
export const rowSession = 'fault:rows'
export const importedScope = 'imported'
/** End of the name of the second session of a bundle, and number of messages of each. */
export const importedSuffix = '-more'
export const importedMessages = 3
const sharedSessions = ['fault:shared-0', 'fault:shared-1']

/** Plans the operations of one caller. All callers append to and erase from the shared sessions; each erases only its own session as a whole. */
export function planOperations(caller: string, options: PlanOptions): readonly PlannedOperation[] {
  const { seed, steps, withErasure, withOthers } = options
  const random = seededRandom(crc32(caller) ^ seed)
  const ownSession = `fault:own-${caller}`
  const erasable: PlannedOperation[] = []
  const planOther = createOtherPlanner(caller, random)
  return Array.from({ length: steps }, (_, step): PlannedOperation => {
    const id = `${caller}-${step}`
    if (withOthers && random() < 0.4) return planOther(id)
    const roll = random()
    if (roll < 0.12)
      return withErasure
        ? { kind: 'eraseSession', id, session: ownSession }
        : { kind: 'increment', id, session: counterSession }
    const target = roll < 0.28 && withErasure ? erasable.shift() : undefined
    if (target !== undefined) return { kind: 'eraseMessage', id, session: target.session, target: target.id }
    const withFact = roll < 0.5
    const session = withFact ? ownSession : (sharedSessions[Math.floor(random() * sharedSessions.length)] as string)
    const append: PlannedOperation = { kind: 'append', id, session, messages: 1 + Math.floor(random() * 4), withFact }
    if (!withFact) erasable.push(append)
    return append
  })
}

/** Returns a function that plans a replacement in a session of the caller, a row or an import. */
function createOtherPlanner(caller: string, random: () => number): (id: string) => PlannedOperation {
  const session = `fault:edited-${caller}`
  const targets: string[] = []
  return (id) => {
    const roll = random()
    if (roll < 0.3) return { kind: 'putRow', id, session: rowSession, row: `${caller} ${Math.floor(random() * 3)}` }
    if (roll < 0.45) return { kind: 'import', id, session: `${importedScope}:${id}` }
    const target = targets[Math.floor(random() * targets.length)]
    if (roll < 0.8 && target !== undefined) return { kind: 'replace', id, session, target, index: 1 }
    targets.push(id)
    return { kind: 'append', id, session, messages: 2, withFact: false }
  }
}

/** Text that replaces a message. It is as long as the former text, so that the positions of all messages stay the same. */
export function replacementText({ id, target, index }: { id: string; target: string; index: number }): string {
  const { length } = messageText(target, index)
  return `${id} replaces ${target}#${index} `.padEnd(length, 'and so on, ').slice(0, length)
}

/** Text of an operation's message. It identifies its origin and is short, long, or larger than a database page. */
export function messageText(operation: string, index: number): string {
  const random = seededRandom(crc32(`${operation}#${index}`))
  const length = random() < 0.1 ? 9_000 : Math.floor(random() * 800)
  return `${operation}#${index} ${'so it goes on, '.repeat(length / 15)}`
}

/** Parses the origin of a text; undefined unless it is exactly a text of `messageText`. */
export function parseMessageText(text: string): { readonly operation: string; readonly index: number } | undefined {
  const [, operation = '', index = ''] = /^(\S+)#(\d+) /.exec(text) ?? []
  return text === messageText(operation, Number(index)) ? { operation, index: Number(index) } : undefined
}
