import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type TempFolder = Disposable & { readonly path: string }

/** Creates a folder that is deleted on dispose. Its path is resolved, because strace reports resolved paths. */
export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-fault-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
