// Generates the parts of docs that follow from the sources.
import { writeFileSync } from 'node:fs'
import { renderCliReference } from './docs/cli.ts'
import { renderHttp } from './docs/http.ts'
import { readEntryPoints, renderLibrary } from './docs/library.ts'

const reference = new URL('../docs/reference/', import.meta.url)
writeFileSync(new URL('library.md', reference), renderLibrary(readEntryPoints()))
writeFileSync(new URL('http.md', reference), renderHttp())
writeFileSync(new URL('../cli.md', reference), renderCliReference())
