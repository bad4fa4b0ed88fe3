import { setTimeout as delay } from 'node:timers/promises'
import type { Json } from '../../src/domain/entry.ts'
import type { Finding, Part, Replayer } from './part.ts'
import { shrink } from './shrink.ts'

/** A finding with the number of inputs that had it; `isRepeatable` if the shrunk input fails in a fresh environment. */
export type ShrunkFinding = Omit<Finding, 'longInput'> & {
  readonly count: number
  readonly isRepeatable: boolean
  /** About how many inputs the process had tried when it found the first one. */
  readonly firstAfter: number
}

const maxShrunkKinds = 40
/** Most time for the input of one kind. */
const maxKindMs = 30_000

/** Collects findings by kind and keeps the smallest input of each. */
export class FindingCollector {
  private readonly byKind = new Map<string, { finding: Finding; count: number; size: number; firstAfter: number }>()
  private readonly onNewKind: (finding: Finding, firstAfter: number) => void

  constructor(onNewKind: (finding: Finding, firstAfter: number) => void = () => undefined) {
    this.onNewKind = onNewKind
  }

  add(finding: Finding, firstAfter: number): void {
    const size = JSON.stringify(finding.input).length
    const known = this.byKind.get(finding.kind)
    if (known === undefined) {
      this.byKind.set(finding.kind, { finding, count: 1, size, firstAfter })
      this.onNewKind(finding, firstAfter)
    } else {
      known.count++
      if (size < known.size) Object.assign(known, { finding, size })
    }
  }

  /** Shrinks one input per kind until the deadline; the others stay as they are. */
  async shrinkAll(part: Part, deadline: number, isStopped: () => boolean): Promise<readonly ShrunkFinding[]> {
    const shrunk: ShrunkFinding[] = []
    for (const { finding, count, firstAfter } of this.byKind.values())
      shrunk.push(
        shrunk.length < maxShrunkKinds && Date.now() < deadline && !isStopped()
          ? {
              ...(await shrinkFinding(part, finding, Math.min(deadline, Date.now() + maxKindMs), isStopped)),
              count,
              firstAfter,
            }
          : { ...withoutLongInput(finding), count, firstAfter, isRepeatable: false },
      )
    return shrunk
  }
}

export const withoutLongInput = ({ longInput: _, ...finding }: Finding): Omit<Finding, 'longInput'> => finding

/** Reduces the input of a finding to a small one with the same kind of failure. */
async function shrinkFinding(
  part: Part,
  finding: Finding,
  deadline: number,
  isStopped: () => boolean,
): Promise<Omit<ShrunkFinding, 'count' | 'firstAfter'>> {
  await using environment = new Environment(part, deadline)
  const fails = async (input: Json): Promise<Finding | undefined> =>
    isStopped() ? undefined : (await environment.replay(input)).find(({ kind }) => kind === finding.kind)
  const inputs = [finding.input, ...(finding.longInput === undefined ? [] : [finding.longInput])]
  for (const input of inputs) {
    await environment.restart()
    if ((await fails(input)) === undefined) continue
    if (part.maxShrinkTries === 0) return { ...withoutLongInput(finding), isRepeatable: true }
    const limits = { maxTries: part.maxShrinkTries, deadline }
    const smallest = await shrink(input, async (candidate) => (await fails(candidate)) !== undefined, limits)
    await environment.restart()
    environment.deadline = Date.now() + maxKindMs
    const { detail } = (await fails(smallest)) ?? {}
    return { kind: finding.kind, detail: detail ?? finding.detail, input: smallest, isRepeatable: detail !== undefined }
  }
  return { ...withoutLongInput(finding), isRepeatable: false }
}

/** Replays inputs; an input that ends the environment or is not done at the deadline has no findings. */
class Environment implements AsyncDisposable {
  deadline: number
  private readonly part: Part
  private replayer: Replayer | undefined

  constructor(part: Part, deadline: number) {
    this.part = part
    this.deadline = deadline
  }

  async replay(input: Json): Promise<readonly Finding[]> {
    const isDone = new AbortController()
    const late = delay(Math.max(0, this.deadline - Date.now()), undefined, isDone)
    try {
      this.replayer ??= await this.part.openReplayer()
      const findings = await Promise.race([this.replayer.replay(input), late.catch(() => undefined)])
      if (findings === undefined) await this.restart()
      return findings ?? []
    } catch {
      // An input that ends the environment is not a smaller version of one that fails in it.
      await this.restart()
      return []
    } finally {
      isDone.abort()
    }
  }

  async restart(): Promise<void> {
    const { replayer } = this
    this.replayer = undefined
    await replayer?.[Symbol.asyncDispose]()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.restart()
  }
}
