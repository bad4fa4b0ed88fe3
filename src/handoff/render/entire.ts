import type { Tokens } from '../../domain/entry.ts'
import { linesOf } from '../../text/fences.ts'
import type { Saying } from '../extract/said.ts'
import type { ContextItem } from '../item.ts'
import type { Material, WeaveMeans } from '../render.ts'
import { split } from '../split.ts'
import { before } from './before.ts'
import { type Cloth, type Hem, headed, joined } from './cloth.ts'
import { headings } from './fence.ts'
import { frameOf } from './frame.ts'
import { Sections } from './sections.ts'
import { whole } from './told.ts'

/** The sessions before are laid out anew so often when they come out a little too long. */
const tries = 3

/** A conversation that is told with all that was said in it, if that fits, and therefore without a summary. */
export class Entire {
  readonly #material: Material
  readonly #notes: readonly ContextItem[]
  readonly #means: WeaveMeans
  readonly #hem: Hem
  /** What the frame costs, and what everything else that is known must have. */
  readonly #around: Tokens
  readonly #least: Tokens

  constructor(material: Material, notes: readonly ContextItem[], sayings: readonly Saying[], means: WeaveMeans) {
    this.#material = sayings.length === 0 ? material : { ...material, summaries: [] }
    this.#notes = notes
    this.#means = means
    const frame = frameOf(material.title, { ...means, isWhole: true })
    this.#hem = { ...frame, heading: headings.conversation }
    this.#around = frame.tokens
    const hasCode = sayings.some(({ text }) => linesOf(text).some(({ fence }) => fence === 'inside'))
    this.#least = Math.min(this.#known().tokens, split(means.budget, hasCode).metadata - frame.tokens)
  }

  /** With as much of what is known as there is room for; where that is less than its share, all of it, which does not fit. */
  told(sayings: readonly Saying[]): Cloth {
    const said = whole(sayings)
    const room = this.#room(said)
    return joined(this.#hem, this.#known().within(room < this.#least ? Number.POSITIVE_INFINITY : room), said)
  }

  /** With what was said in the sessions before in the room that is left, if any; those that are told need no summary either. */
  withEarlier(sayings: readonly Saying[]): Cloth {
    const { earlier } = this.#material
    const { budget, tokenizer } = this.#means
    const said = whole(sayings)
    // so that what a provider has to say does not take it all
    const known = Math.max(this.#least, Math.floor(this.#room(said) / 2))
    const hem = { ...this.#hem, ...frameOf(this.#material.title, { ...this.#means, isWhole: false }) }
    const silent = earlier.filter(({ messages = [] }) => messages.length === 0)
    if (silent.length === earlier.length) return this.told(sayings)
    let free = budget - tokenizer.count(joined(hem, this.#known(silent).within(known), said).text) - 1
    for (let round = 1; round <= tries; round++) {
      const { texts, sessions, isWhole } = before(earlier, free, this.#means)
      if (texts.length === 0) break
      const others = earlier.filter(({ session }) => !sessions.has(session))
      const cloth = joined({ ...(isWhole ? this.#hem : hem), before: texts }, this.#known(others).within(known), said)
      const spare = budget - tokenizer.count(cloth.text)
      if (spare >= 0) return cloth
      free += spare
    }
    return this.told(sayings)
  }

  #room = (said: string): Tokens =>
    this.#means.budget - this.#around - this.#means.tokenizer.count(headed(this.#hem.heading, said)) - 1

  #known = (earlier = this.#material.earlier): Sections =>
    new Sections({ ...this.#material, earlier }, this.#notes, this.#means.tokenizer)
}
