import type { Row } from './row.ts'

const source = 'Threadkeep'

export const product: readonly Row[] = [
  {
    id: 'P-01',
    source,
    behaviour: 'Public types are assignable to and from those of `openai`, `@anthropic-ai/sdk` and `ai` without casts.',
    status: 'kept',
    in: ['src/domain/sdkMessages.ts', 'src/domain/chat.ts', 'src/formats/parseInput.ts', 'src/formats/originals.ts'],
  },
  {
    id: 'P-02',
    source,
    behaviour: 'A wrong Node version produces one clear sentence from every entry point.',
    status: 'kept',
    in: ['src/nodeVersion.ts', 'src/requireNode.ts', 'src/cli/main.ts'],
  },
  {
    id: 'P-03',
    source,
    behaviour: 'Every snippet in README and docs runs in a test, and every public export is documented.',
    status: 'kept',
    in: ['scripts/docs.ts', 'scripts/docs/library.ts', 'scripts/docs/http.ts', 'src/server/openapi/docsPage.ts'],
  },
  {
    id: 'P-04',
    source,
    behaviour: 'Long work shows progress. Nothing is overwritten or erased without a message that names it.',
    status: 'kept',
    in: [
      'src/cli/terminal/progress.ts',
      'src/cli/terminal/confirm.ts',
      'src/cli/terminal/outFile.ts',
      'src/cli/forget/preview.ts',
    ],
  },
]
