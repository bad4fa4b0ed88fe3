/** Runs a share of a part in a process of its own: a crash ends the share, not the campaign. */

import { FindingCollector, type ShrunkFinding } from './findingCollector.ts'
import type { RunResult } from './part.ts'
import { parts } from './parts.ts'

export type WorkerTask = {
  readonly part: string
  readonly seed: number
  readonly inputs: number
  readonly deadline: number
}
export type WorkerMessage =
  | { readonly progress: number }
  | { readonly findings: readonly ShrunkFinding[]; readonly result: RunResult }

const task = JSON.parse(process.argv[2] as string) as WorkerTask
const part = parts.find(({ name }) => name === task.part)
if (part === undefined) throw new Error(`Unknown part ${task.part}`)

const send = (message: WorkerMessage): void => void process.send?.(message)
const collector = new FindingCollector()
process.on('unhandledRejection', (reason) =>
  collector.add({
    kind: 'unhandled rejection',
    detail: reason instanceof Error ? `${reason.stack}` : String(reason),
    input: null,
  }),
)
const result = await part.run({
  ...task,
  onProgress: (progress) => send({ progress }),
  onFinding: (finding) => collector.add(finding),
})
// Exiting at once would drop a large message.
process.send?.({ findings: await collector.shrinkAll(part), result } satisfies WorkerMessage, () => process.exit())
