import type { Json } from '../../src/domain/entry.ts'
import type { Finding, Part, Replayer } from './part.ts'
import { shrink } from './shrink.ts'

/** A finding with the number of inputs that had it; `isRepeatable` if the shrunk input fails in a fresh environment. */
export type ShrunkFinding = Omit<Finding, 'longInput'> & { readonly count: number; readonly isRepeatable: boolean }

const maxShrunkKinds = 40
/** Most time for the input of one kind, and for all of them. */
const maxKindMs = 30_000
const maxTotalMs = 150_000

/** Collects findings by kind and keeps the smallest input of each. */
export class FindingCollector {
  private readonly byKind = new Map<string, { finding: Finding; count: number; size: number }>()

  add(finding: Finding): void {
    const size = JSON.stringify(finding.input).length
    const known = this.byKind.get(finding.kind)
    if (known === undefined) this.byKind.set(finding.kind, { finding, count: 1, size })
    else {
      known.count++
      if (size < known.size) Object.assign(known, { finding, size })
    }
  }

  /** Shrinks one input per kind. */
  async shrinkAll(part: Part): Promise<readonly ShrunkFinding[]> {
    const shrunk: ShrunkFinding[] = []
    const deadline = Date.now() + maxTotalMs
    for (const { finding, count } of this.byKind.values())
      shrunk.push(
        shrunk.length < maxShrunkKinds && Date.now() < deadline
          ? { ...(await shrinkFinding(part, finding)), count }
          : { ...withoutLongInput(finding), count, isRepeatable: false },
      )
    return shrunk
  }
}

const withoutLongInput = ({ longInput: _, ...finding }: Finding): Omit<Finding, 'longInput'> => finding

/** Reduces the input of a finding to a small one with the same kind of failure. */
async function shrinkFinding(part: Part, finding: Finding): Promise<Omit<ShrunkFinding, 'count'>> {
  let replayer: Replayer | undefined
  const restart = async (): Promise<void> => {
    await replayer?.[Symbol.asyncDispose]()
    replayer = undefined
  }
  const fails = async (input: Json): Promise<Finding | undefined> => {
    try {
      replayer ??= await part.openReplayer()
      return (await replayer.replay(input)).find(({ kind }) => kind === finding.kind)
    } catch {
      // An input that ends the environment is not a smaller version of one that fails in it.
      await restart()
      return undefined
    }
  }
  try {
    const inputs = [finding.input, ...(finding.longInput === undefined ? [] : [finding.longInput])]
    for (const input of inputs) {
      await restart()
      if ((await fails(input)) === undefined) continue
      if (part.maxShrinkTries === 0) return { ...withoutLongInput(finding), isRepeatable: true }
      const limits = { maxTries: part.maxShrinkTries, deadline: Date.now() + maxKindMs }
      const smallest = await shrink(input, async (candidate) => (await fails(candidate)) !== undefined, limits)
      await restart()
      const { detail } = (await fails(smallest)) ?? {}
      return {
        kind: finding.kind,
        detail: detail ?? finding.detail,
        input: smallest,
        isRepeatable: detail !== undefined,
      }
    }
    return { ...withoutLongInput(finding), isRepeatable: false }
  } finally {
    await restart()
  }
}
