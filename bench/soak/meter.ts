// Preloaded into the server of the soak: reports its memory, collects garbage and writes heap snapshots on request.
import { readFileSync } from 'node:fs'
import { setFlagsFromString, writeHeapSnapshot } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Memory of the server process in bytes, and its open handles. */
export type MemorySample = NodeJS.MemoryUsage & {
  /** Resident memory that is not backed by a file; equal to `rss` where the system does not tell them apart. */
  readonly anonymous: number
  readonly handles: number
}
export type MeterCommand = 'sample' | 'collect' | { readonly snapshot: string }

function sampleMemory(): MemorySample {
  const usage = process.memoryUsage()
  return { ...usage, anonymous: readAnonymousBytes() ?? usage.rss, handles: process.getActiveResourcesInfo().length }
}

function readAnonymousBytes(): number | undefined {
  try {
    const kilobytes = /RssAnon:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'latin1'))?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024
  } catch {
    return undefined
  }
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let round = 0; round < 3; round++) collect()
}

process.on('message', (command: MeterCommand) => {
  if (command === 'collect') collectGarbage()
  if (typeof command === 'object') writeHeapSnapshot(command.snapshot)
  process.send?.(sampleMemory())
})
process.on('disconnect', () => process.exit())
// The channel alone must not keep the server from stopping.
process.channel?.unref()
