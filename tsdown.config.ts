import { defineConfig } from 'tsdown'
import { createVendorPlugin } from './scripts/vendor.ts'

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/browser.ts',
    'src/upkeep/upkeep.ts',
    'src/memory/secretMasker.ts',
    'src/lifecycle/lifecycle.ts',
    'src/memory/embedding.ts',
    'src/search/wordTable.ts',
    'src/memory/replay.ts',
    'src/stores/conformance.ts',
    'src/stores/ram.ts',
    'src/stores/sqlite.ts',
    // Started as a thread, so nobody imports it.
    'src/stores/sqlite/writer.ts',
    // Started as a process.
    'src/files/readerProcess.ts',
    'src/stores/redis.ts',
    'src/stores/encrypted.ts',
    'src/stores/postgres.ts',
    'src/adapters/session-memory.ts',
    'src/adapters/persistent-sessions.ts',
    'src/adapters/ai-service.ts',
    'src/cli/main.ts',
  ],
  // dist/ mirrors src/, so that every entry shares one copy of each module and paths relative to a module stay true.
  unbundle: true,
  format: 'esm',
  platform: 'node',
  fixedExtension: false,
  // Old versions must be able to parse the code in order to say that they are too old.
  target: 'node20',
  dts: true,
  // Other packages are built into dist/vendor, which holds only the modules that are used: docs/decisions/0025.
  // Optional peers are loaded from the application; another package's own copy of one is built in.
  deps: { alwaysBundle: (_, importer) => importer?.includes('/node_modules/'), onlyBundle: false },
  plugins: [createVendorPlugin()],
  outputOptions: {
    // npm leaves folders named node_modules out of a package.
    entryFileNames: ({ name }) => `${name.replaceAll('node_modules', 'vendor')}.js`,
    chunkFileNames: ({ name }) => `${name.replaceAll('node_modules', 'vendor')}.js`,
  },
})
