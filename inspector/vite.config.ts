import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** Builds the inspector page into `inspector/dist`, from which the server serves it. */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: 'dist',
    target: 'es2023',
    // The content policy forbids inlined files and the script that would preload modules.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The licenses of the packages that the page contains.
    license: { fileName: 'LICENSES.md' },
  },
})
