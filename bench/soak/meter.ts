// Preloaded into the server of the soak: reports its memory, collects garbage and writes heap snapshots on request.
import { subscribe } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import { getHeapSpaceStatistics, setFlagsFromString, writeHeapSnapshot } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Worker } from 'node:worker_threads'

/** Memory of the server process in bytes, and its open handles. */
export type MemorySample = NodeJS.MemoryUsage & {
  /** Resident memory that is not backed by a file; equal to `rss` where the system does not tell them apart. */
  readonly anonymous: number
  readonly handles: number
  /** Processor time of the server so far. */
  readonly cpuSeconds: number
  /** Resident bytes by part of the server's memory; only on request. The heap's spaces are in the anonymous mappings. */
  readonly parts?: Readonly<Record<string, number>>
}
export type MeterCommand = 'sample' | 'collect' | 'parts' | { readonly snapshot: string }

function sampleMemory(): MemorySample {
  const usage = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return {
    ...usage,
    anonymous: readAnonymousBytes() ?? usage.rss,
    handles: process.getActiveResourcesInfo().length,
    cpuSeconds: (user + system) / 1_000_000,
  }
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

const workers = new Set<Worker>()
subscribe('worker_threads', (message) => {
  const { worker } = message as { readonly worker: Worker }
  workers.add(worker)
  worker.once('exit', () => workers.delete(worker))
})

/** Resident memory by kind of mapping, the spaces of V8's heap, and the heaps of worker threads. */
async function measureParts(): Promise<Readonly<Record<string, number>>> {
  const parts = sumMappings()
  for (const { space_name: name, physical_space_size: bytes } of getHeapSpaceStatistics()) parts[`V8 ${name}`] = bytes
  let index = 1
  for (const worker of workers) {
    const { total_physical_size: heap, external_memory: external } = await worker.getHeapStatistics()
    parts[`V8 heap of worker thread ${index}`] = heap
    parts[`buffers of worker thread ${index++}, in malloc`] = external
  }
  return parts
}

/** Size and alignment of the address range that glibc reserves for an arena of a thread. */
const arenaBytes = 64 * 1024 * 1024
const mappingPattern = /^([0-9a-f]+)-[0-9a-f]+ (\S+) \S+ \S+ \d+ *(.*)$/

/** Adds up the resident bytes of mappings by kind; empty where the system does not list them. */
function sumMappings(): Record<string, number> {
  const sums: Record<string, number> = {}
  let name = ''
  let arenaEnd = 0
  for (const line of readLines('/proc/self/smaps')) {
    const [, address, access, file = ''] = mappingPattern.exec(line) ?? []
    if (address !== undefined) {
      const start = Number.parseInt(address, 16)
      if (file === '' && access === 'rw-p' && start % arenaBytes === 0) arenaEnd = start + arenaBytes
      if (file.startsWith('[')) name = file
      else if (file !== '') name = 'files'
      else name = start < arenaEnd ? 'malloc arenas of threads' : `anonymous ${access}`
    }
    const kilobytes = /^Rss: +(\d+) kB/.exec(line)?.[1]
    if (kilobytes !== undefined) sums[name] = (sums[name] ?? 0) + Number(kilobytes) * 1024
  }
  return sums
}

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, 'latin1').split('\n')
  } catch {
    return []
  }
}

process.on('message', async (command: MeterCommand) => {
  if (command === 'collect') collectGarbage()
  if (typeof command === 'object') writeHeapSnapshot(command.snapshot)
  process.send?.({ ...sampleMemory(), ...(command === 'parts' && { parts: await measureParts() }) })
})
process.on('disconnect', () => process.exit())
// The channel alone must not keep the server from stopping.
process.channel?.unref()
