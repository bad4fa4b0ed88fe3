#!/usr/bin/env node
import { runCli } from './run.ts'
import { installInterruptHandler } from './terminal/interrupt.ts'

// A closed pipe, as with `| head`, is not a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
installInterruptHandler()
await runCli(process.argv.slice(2))
