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
  'test/handoff/{draftSessions,pastedRecords,renderBudget,renderPriorityLines}.test.ts',
  'test/{languages,text}/hostile.test.ts',
  'test/text/upperBound.test.ts',
  'test/text/secret{Cost,Misses,Triggers}.test.ts',
  'test/tokenizers/{asciiPieces,tokenizers}.test.ts',
  'test/context/{budgetUse,guarantees,replay,stablePrefix}.test.ts',
  'test/domain/{payload,work}.test.ts',
  'test/adapters/persistent-sessions.test.ts',
  'test/evaluation/gate.test.ts',
  'test/memory/{boundedCaches,longMessages,vectorSearch}.test.ts',
  'test/upkeep/{ownText,summarise}.test.ts',
  'test/upkeep/quality/*.test.ts',
]
/** Files that depend on the state of modules when they are loaded. */
const isolated = [
  // Once undici has created its timer, fake timers no longer control it.
  'test/server/upstreams/timeouts.test.ts',
  // Measures the heap of the process.
  'test/memory/boundedCaches.test.ts',
  // Replaces the random generator of the process.
  'test/campaign/*.test.ts',
]
const campaign = process.env.THREADKEEP_CAMPAIGN === '1'

const system = {
  globalSetup: ['test/support/postgresSetup.ts'],
  setupFiles: ['test/seeded.ts'],
  testTimeout: campaign ? 1_800_000 : 120_000,
  hookTimeout: 120_000,
  // A browser on a busy machine takes longer than the default of one second.
  expect: { poll: { timeout: 15_000 } },
}

export default defineConfig({
  test: {
    // Most of them wait for processes of their own.
    maxWorkers: availableParallelism() + 1,
    // The baseline compiler of Node 24 crashes now and then in garbage collection (nodejs/node#62393).
    execArgv: ['--no-sparkplug'],
    // Node runs the sources as they are, in tests too.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Most files share the modules they import: loading them for each file takes longer than most of the tests.
    projects: [
      {
        test: {
          name: 'unit',
          isolate: false,
          setupFiles: ['test/seeded.ts'],
          include: [all],
          exclude: [...slow, ...configDefaults.exclude],
          testTimeout: campaign ? 1_800_000 : 20_000,
        },
      },
      {
        test: {
          ...system,
          name: 'system',
          isolate: false,
          include: slow,
          exclude: [...isolated, ...configDefaults.exclude],
        },
      },
      { test: { ...system, name: 'isolated', include: isolated } },
    ],
  },
})
