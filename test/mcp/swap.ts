import { renameSync, symlinkSync, unlinkSync } from 'node:fs'

// Replaces a folder by a link to another one and back, as fast as possible, until it is killed: node swap.ts FOLDER OTHER
const [folder = '', other = ''] = process.argv.slice(2)
process.stdout.write('swapping\n')
for (;;) {
  renameSync(folder, `${folder}.aside`)
  symlinkSync(other, folder)
  unlinkSync(folder)
  renameSync(`${folder}.aside`, folder)
}
