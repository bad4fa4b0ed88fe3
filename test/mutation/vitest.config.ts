import { defineConfig } from 'vitest/config'
import { findArea } from './areas.ts'

/** Runs only the tests of the area that is mutated. */
export default defineConfig({
  test: {
    include: [...findArea(process.env.THREADKEEP_MUTATION_AREA ?? '').tests],
    setupFiles: ['test/seeded.ts'],
    // One worker loads the source once for all test files.
    isolate: false,
    // A mutant that waits for ever fails soon.
    testTimeout: 15_000,
    hookTimeout: 15_000,
  },
})
