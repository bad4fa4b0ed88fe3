import { writeFileSync } from 'node:fs'
import { renderCliReference } from './cliReference.ts'

writeFileSync(new URL('../docs/cli.md', import.meta.url), renderCliReference())
