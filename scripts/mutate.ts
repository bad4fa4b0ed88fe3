// Mutation tests of one area or of all: `npm run mutate -- keys`. Results of earlier runs are reused for unchanged code.
import { Stryker } from '@stryker-mutator/core'
import { areaNames, findArea } from '../test/mutation/areas.ts'

const minScorePercent = 90
const folder = '.mutation'

async function mutate(name: string, isForced: boolean): Promise<void> {
  const { mutate: files } = findArea(name)
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
    force: isForced,
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

const args = process.argv.slice(2)
const names = args.filter((arg) => arg !== '--force')
for (const name of names.length === 0 ? areaNames : names) await mutate(name, args.includes('--force'))
