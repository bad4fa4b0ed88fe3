import { type Compared, compare, isUser, type Likeness, startsAt } from './likeness.ts'

/** A place in what is stored and one in what was sent. */
type Places = { readonly stored: number; readonly sent: number }

/** Two histories side by side. */
type Pair = Likeness & { readonly old: readonly Compared[]; readonly told: readonly Compared[] }

/** Where two histories have the same messages, one after the other. */
type Overlap = {
  /** How many of the first messages sent the stored ones end with. */
  readonly ending: number
  /** Behind the longest beginning of what was sent that is stored anywhere; the latest, if there are several. */
  readonly longest: Places
}

/**
 * Lays the history a client tells along the stored one: the first place on either side that the other does not have.
 * Nothing, if they have nothing in common. `hasEarlier` tells that the stored history begins before what is given of it.
 *
 * The client's history may begin anywhere, leave messages out, hold some that were never stored (a summary of its own) or
 * tell them differently: what stands between two messages that both sides have is taken for the same. A user's message
 * too: a client that edits one drops the replies after it, for they answer something else. One that still has the reply
 * has only dressed its question (with search results, with reminders), or undressed it.
 *
 * It takes time in proportion to what is compared, however much that repeats itself.
 */
export function align(old: readonly Compared[], told: readonly Compared[], hasEarlier: boolean): Places | undefined {
  // Nearly all clients tell the whole of it as it is stored, or the end of it, and go on from there.
  if (!hasEarlier && startsAt(old, 0, told, old.length)) return { stored: old.length, sent: old.length }
  if (hasEarlier && isEndAndNews(old, told)) return { stored: old.length, sent: told.length - 1 }
  return alignClosely(old, told, hasEarlier)
}

/** Whether a client tells the end of what is stored, to the letter, and one message more that cannot be the end itself. */
function isEndAndNews(old: readonly Compared[], told: readonly Compared[]): boolean {
  const newest = told.at(-1)?.role
  if (newest === 'assistant' || newest === old.at(-1)?.role) return false
  return startsAt(old, old.length - told.length + 1, told, told.length - 1)
}

/** The same without the short ways for what is equal to the letter. */
export function alignClosely(
  old: readonly Compared[],
  told: readonly Compared[],
  hasEarlier: boolean,
): Places | undefined {
  const pair: Pair = { ...compare(old, told), old, told }
  const meet = meeting(pair)
  let turns: readonly [readonly number[], readonly number[]] | undefined
  const resume = ({ stored, sent }: Places): Places | undefined => {
    if (stored === old.length || sent === told.length) return undefined
    // What a client sends last is not cut short, but to be continued.
    if (sent < told.length - 1 && pair.isPartOf(stored, sent)) return { stored: stored + 1, sent: sent + 1 }
    turns ??= [nextUsers(old), nextUsers(told)]
    const asked = { stored: turns[0][stored] as number, sent: turns[1][sent] as number }
    return pair.same(asked.stored, asked.sent) ? asked : meet({ stored, sent })
  }
  let at: Places | undefined
  let next = beginning(pair, hasEarlier) ?? meet({ stored: 0, sent: 0 })
  // This is little to go by: what was not read may tell more.
  if (next === undefined && !hasEarlier) next = newestOf(pair)
  while (next !== undefined) {
    at = together(pair, next)
    next = resume(at)
  }
  return at
}

/** Where the first messages sent are stored. Nothing, if that is told by too little. */
function beginning(pair: Pair, hasEarlier: boolean): Places | undefined {
  const { old, told } = pair
  const whole = hasEarlier ? 0 : together(pair, { stored: 0, sent: 0 }).sent
  if (whole > 0 && whole === old.length) return { stored: whole, sent: whole }
  const { ending, longest } = overlap(old, told)
  // A client has no new replies, they come from here: if some follow, the end of what is stored is like it by chance.
  const isNews = !told.slice(ending).some(({ role }) => role === 'assistant')
  if (ending > 0 && isNews && whole <= ending) return { stored: old.length, sent: ending }
  if (told.slice(0, longest.sent).some((message) => !isUser(message))) return longest
  return whole > 0 ? { stored: whole, sent: whole } : undefined
}

/** Finds what the beginning of one list and the other have in common, comparing no message again and again. */
export function overlap(old: readonly Compared[], told: readonly Compared[]): Overlap {
  const { same } = compare(old, told)
  const borders = bordersOf(told)
  let known = 0
  let longest: Places = { stored: 0, sent: 0 }
  for (let place = 0; place < old.length; place++) {
    while (known > 0 && !same(place, known)) known = borders[known - 1] ?? 0
    if (same(place, known)) known++
    if (known >= longest.sent) longest = { stored: place + 1, sent: known }
  }
  return { ending: known, longest }
}

/** For each beginning of a list, how long its longest end is that is a beginning too. */
function bordersOf(list: readonly Compared[]): readonly number[] {
  const { same } = compare(list, list)
  const borders = [0]
  let length = 0
  for (let at = 1; at < list.length; at++) {
    while (length > 0 && !same(at, length)) length = borders[length - 1] ?? 0
    if (same(at, length)) length++
    borders.push(length)
  }
  return borders
}

/** How many messages two histories have in common, from the first one on. */
export const commonStart = (old: readonly Compared[], told: readonly Compared[]): number =>
  together(compare(old, told), { stored: 0, sent: 0 }).sent

/** Behind all that is the same from two places on. */
function together({ same }: Likeness, { stored, sent }: Places): Places {
  let many = 0
  while (same(stored + many, sent + many)) many++
  return { stored: stored + many, sent: sent + many }
}

/** Finds the next reply that both have. Only replies, for people say "yes" and "go on" all the time. */
function meeting({ old, told, storedText, sentText }: Pair): (from: Places) => Places | undefined {
  let places: ReadonlyMap<string, readonly number[]> | undefined
  return ({ stored, sent }) => {
    places ??= Map.groupBy(
      old.flatMap((message, place) => (isUser(message) ? [] : [place])),
      storedText,
    )
    for (let place = sent; place < told.length; place++) {
      const found = firstFrom(places.get(sentText(place)) ?? [], stored)
      if (found !== undefined) return { stored: found, sent: place }
    }
    return undefined
  }
}

/** The first of the numbers, which grow, that is not below another. */
function firstFrom(numbers: readonly number[], least: number): number | undefined {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((numbers[middle] as number) < least) low = middle + 1
    else high = middle
  }
  return numbers[low]
}

/** For each place, that of the next user's message, its own if it is one. */
function nextUsers(list: readonly Compared[]): readonly number[] {
  const places = new Array<number>(list.length)
  let next = list.length
  for (let place = list.length - 1; place >= 0; place--) {
    if (isUser(list[place] as Compared)) next = place
    places[place] = next
  }
  return places
}

/** Behind the newest message stored, where the client has it at all. */
function newestOf({ old, told, same, isPartOf }: Pair): Places | undefined {
  const newest = old.length - 1
  const found = told.findLastIndex(
    (_, place) => same(newest, place) || (place < told.length - 1 && isPartOf(newest, place)),
  )
  return found < 0 ? undefined : { stored: old.length, sent: found + 1 }
}
