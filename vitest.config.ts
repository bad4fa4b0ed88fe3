import { existsSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'

// Worker threads and commands that tests start load the sources: compiled code from an earlier start saves most of the time.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('node_modules/.cache/compiled', import.meta.url))

// Most tests wait for the disk to sync; files in memory take the same path without the wait.
const memoryFolder = '/dev/shm'
const minMemoryFolderBytes = 4_000_000_000
if (process.env.TMPDIR === undefined && existsSync(memoryFolder)) {
  const { bavail, bsize } = statfsSync(memoryFolder)
  if (bavail * bsize >= minMemoryFolderBytes) process.env.TMPDIR = memoryFolder
}

const all = 'test/**/*.test.ts'
/** Tests that start processes, servers or builds, and those that try thousands of cases or megabytes of text. */
const slow = [
  ...[
    'server',
    'cli',
    'package',
    'consumer',
    'examples',
    'docs',
    'stores',
    'fault',
    'portable',
    'scenarios',
    'files',
    'mcp',
    'graph',
    'masking',
    'campaign',
    'deploy',
    'inspector',
  ].map((folder) => `test/${folder}/**/*.test.ts`),
  'test/handoff/{analytics,chain,layout,monitor,pending,references,restore,retention,save}*.test.ts',
  'test/handoff/{draftSessions,pastedRecords}.test.ts',
  'test/{languages,text}/hostile.test.ts',
  'test/text/upperBound.test.ts',
  'test/text/secret{Cost,Misses}.test.ts',
  'test/tokenizers/tokenizers.test.ts',
  'test/context/{guarantees,replay}.test.ts',
  'test/adapters/persistent-sessions.test.ts',
  'test/evaluation/gate.test.ts',
  'test/memory/vectorSearch.test.ts',
  'test/upkeep/ownText.test.ts',
  'test/upkeep/quality/*.test.ts',
]
const campaign = process.env.THREADKEEP_CAMPAIGN === '1'

export default defineConfig({
  test: {
    // Most of them wait for processes of their own.
    maxWorkers: availableParallelism() + 1,
    // The baseline compiler of Node 24 crashes now and then in garbage collection (nodejs/node#62393).
    execArgv: ['--no-sparkplug'],
    // Node runs the sources as they are, in tests too.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      {
        test: {
          name: 'unit',
          // Files share the modules they import: loading them for each file takes longer than most of the tests.
          isolate: false,
          setupFiles: ['test/seeded.ts'],
          include: [all],
          exclude: [...slow, ...configDefaults.exclude],
          testTimeout: campaign ? 1_800_000 : 20_000,
        },
      },
      {
        test: {
          name: 'system',
          globalSetup: ['test/support/postgresSetup.ts'],
          setupFiles: ['test/seeded.ts'],
          include: slow,
          testTimeout: campaign ? 1_800_000 : 120_000,
          hookTimeout: 120_000,
          // A browser on a busy machine takes longer than the default of one second.
          expect: { poll: { timeout: 15_000 } },
        },
      },
    ],
  },
})
