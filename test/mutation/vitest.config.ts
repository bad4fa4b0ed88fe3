import { matchesGlob, relative } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { findArea } from './areas.ts'

const tests: readonly string[] = findArea(process.env.THREADKEEP_MUTATION_AREA ?? '').tests

/** Runs test files in the order in which the area lists them: most mutants fail in one of the first. */
class AreaSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const position = ({ moduleId }: TestSpecification): number =>
      tests.findIndex((pattern) => matchesGlob(relative(this.ctx.config.root, moduleId), pattern))
    return files.toSorted((left, right) => position(left) - position(right))
  }
}

/** Runs only the tests of the area that is mutated. */
export default defineConfig({
  test: {
    include: [...tests],
    sequence: { sequencer: AreaSequencer },
    setupFiles: ['test/seeded.ts'],
    // One worker loads the source once for all test files.
    isolate: false,
    // A mutant that waits for ever fails soon.
    testTimeout: 15_000,
    hookTimeout: 15_000,
  },
})
