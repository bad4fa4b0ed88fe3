import { crc32 } from 'node:zlib'
import { chanceOf } from './chance.ts'

/** Something a writer does. Its id is the operation id it is written under. */
export type Operation =
  /** Messages in one append; if it learns, a fact goes with them in the same commit. */
  | {
      readonly does: 'say'
      readonly id: string
      readonly session: string
      readonly messages: number
      readonly learns: boolean
    }
  /** Takes out one message, which the same caller was told is stored. */
  | { readonly does: 'drop'; readonly id: string; readonly session: string; readonly message: string }
  | { readonly does: 'forget'; readonly id: string; readonly session: string }
  /** Reads a number, adds one and writes it back, unless somebody has written in between. */
  | { readonly does: 'count'; readonly id: string; readonly session: string }

/** An operation before it is known which message it takes out: the last one of an earlier operation. */
export type Planned =
  | Exclude<Operation, { does: 'drop' }>
  | { readonly does: 'drop'; readonly id: string; readonly session: string; readonly of: string }

export type Plan = {
  readonly seed: number
  readonly steps: number
  /** With erasing, messages and whole sessions are forgotten in between; without it, something is counted instead. */
  readonly erases: boolean
}

/** The session of the number that is counted up. */
export const counted = 'fault:counted'
const shared = ['fault:shared-0', 'fault:shared-1']

/** What one caller does, one after the other. Sessions that all share are only added to and taken from; each forgets only its own. */
export function planOf(caller: string, { seed, steps, erases }: Plan): readonly Planned[] {
  const chance = chanceOf(crc32(caller) ^ seed)
  const own = `fault:own-${caller}`
  const droppable: Planned[] = []
  return Array.from({ length: steps }, (_, step): Planned => {
    const id = `${caller}-${step}`
    const roll = chance()
    if (roll < 0.12) return erases ? { does: 'forget', id, session: own } : { does: 'count', id, session: counted }
    const target = roll < 0.28 && erases ? droppable.shift() : undefined
    if (target !== undefined) return { does: 'drop', id, session: target.session, of: target.id }
    const learns = roll < 0.5
    const session = learns ? own : (shared[Math.floor(chance() * shared.length)] as string)
    const said: Planned = { does: 'say', id, session, messages: 1 + Math.floor(chance() * 4), learns }
    if (!learns) droppable.push(said)
    return said
  })
}

/** The words of a message of an operation: they tell where they belong, and are short, long, or longer than a page of the database. */
export function textOf(operation: string, place: number): string {
  const chance = chanceOf(crc32(`${operation}#${place}`))
  const length = chance() < 0.1 ? 9_000 : Math.floor(chance() * 800)
  return `${operation}#${place} ${'so it goes on, '.repeat(length / 15)}`
}

/** Where a text belongs; undefined if it is not one of ours, to the letter. */
export function originOf(text: string): { readonly operation: string; readonly place: number } | undefined {
  const [, operation = '', place = ''] = /^(\S+)#(\d+) /.exec(text) ?? []
  return text === textOf(operation, Number(place)) ? { operation, place: Number(place) } : undefined
}
