import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Folder = Disposable & { readonly path: string }

/** A folder that is gone with everything in it when it is no longer used. Its path is the one that system calls are recorded with. */
export function newFolder(): Folder {
  const path = mkdtempSync(join(realpathSync(tmpdir()), 'threadkeep-fault-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
