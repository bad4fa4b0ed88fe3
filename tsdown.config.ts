import { defineConfig } from 'tsdown'

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
    'src/stores/encrypted.ts',
    'src/adapters/session-memory.ts',
    'src/adapters/persistent-sessions.ts',
    'src/adapters/ai-service.ts',
    'src/cli/main.ts',
  ],
  // dist/ mirrors src/, so that every entry shares one copy of each module and paths relative to a module stay true.
  unbundle: true,
  format: 'esm',
  platform: 'neutral',
  target: 'node22.13',
  dts: true,
  deps: { neverBundle: [/^node:/], onlyBundle: [] },
})
