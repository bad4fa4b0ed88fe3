import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { removeServer } from './postgresServer.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Folder of the PostgreSQL server that the test files of a run share; it is started by the first that needs it. */
    readonly postgresFolder: string
  }
}

/** Ends the shared PostgreSQL server with the run. */
export default function setup(project: TestProject): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-postgres-'))
  project.provide('postgresFolder', folder)
  return () => removeServer(folder)
}
