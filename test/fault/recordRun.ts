import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeStoreKey } from './runOperation.ts'
import { runWriter, type standardScenario } from './runWriter.ts'
import { diskCalls } from './simulatedDisk.ts'
import { parseTrace, type SystemCall, traceOptions } from './straceOutput.ts'
import { createTempFolder } from './tempFolder.ts'

/** The disk calls of a run in a folder that is gone; `key` is that of an encrypted store. */
export type RecordedRun = {
  readonly calls: readonly SystemCall[]
  readonly folder: string
  readonly key?: Buffer
}

/** Records all disk calls of a run that creates a new file. */
export async function recordRun(
  scenario: typeof standardScenario,
  seed: number,
  isEncrypted = false,
): Promise<RecordedRun> {
  using folder = createTempFolder()
  using traceFolder = createTempFolder()
  const [file, trace] = [join(folder.path, 'a.db'), join(traceFolder.path, 'trace')]
  if (isEncrypted) writeStoreKey(file)
  const { result } = await runWriter(scenario(file, seed), traceOptions(trace, ...diskCalls))
  if (result.code !== 0 || result.stderr !== '') throw new Error(`The writer failed: ${result.stderr}`)
  return {
    calls: parseTrace(readFileSync(trace, 'utf8')),
    folder: folder.path,
    ...(isEncrypted && { key: readFileSync(join(folder.path, 'key')) }),
  }
}
