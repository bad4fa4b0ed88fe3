// Mutation tests of one area or of all: `npm run mutate -- keys`. Results of earlier runs are reused for unchanged code.
// `--mutate FILE` and `--mutate FILE:FROM-TO` restrict the run of an area to files or lines; repeatable.
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'
import { areaNames, findArea } from '../test/mutation/areas.ts'

const minScorePercent = 90
const folder = '.mutation'

type RunOptions = { readonly force: boolean; readonly mutate: readonly string[] }

async function mutate(name: string, options: RunOptions): Promise<void> {
  const files = options.mutate.length === 0 ? findArea(name).mutate : options.mutate
  process.env.THREADKEEP_MUTATION_AREA = name
  await new Stryker({
    mutate: [...files],
    testRunner: 'vitest',
    testRunnerNodeArgs: ['--no-sparkplug'],
    plugins: ['@stryker-mutator/vitest-runner'],
    disableTypeChecks: false,
    coverageAnalysis: 'perTest',
    concurrency: 1,
    incremental: true,
    force: options.force,
    incrementalFile: `${folder}/${name}.json`,
    tempDirName: `${folder}/sandbox`,
    // Stryker rewrites a tsconfig.json with the compiler interface that TypeScript 7 does not have.
    ignorePatterns: ['/bench', '/docs', '/dist', '/coverage', '/test/agents', '/tsconfig*.json', `/${folder}`],
    vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { logTests: false, allowColor: false, reportTests: false },
    thresholds: { high: 100, low: minScorePercent, break: minScorePercent },
    allowConsoleColors: false,
    timeoutMS: 8_000,
  }).runMutationTest()
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { force: { type: 'boolean', default: false }, mutate: { type: 'string', multiple: true, default: [] } },
})
for (const name of positionals.length === 0 ? areaNames : positionals) await mutate(name, values)
