#!/usr/bin/env node
import { describeOldNode } from '../nodeVersion.ts'

// The rest is imported afterwards: modules that an old Node cannot load would fail before the check.
const problem = describeOldNode(process.versions.node)
if (problem === undefined) {
  const { runCommand } = await import('./run.ts')
  await runCommand()
} else {
  process.stderr.write(`${problem}\n`)
  process.exitCode = 1
}
