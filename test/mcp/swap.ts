import { renameSync, symlinkSync, unlinkSync } from 'node:fs'

/** Until it is ended: makes a folder a link to another one and back, as fast as it can. */
const [folder = '', other = ''] = process.argv.slice(2)
process.stdout.write('swapping\n')
for (;;) {
  renameSync(folder, `${folder}.aside`)
  symlinkSync(other, folder)
  unlinkSync(folder)
  renameSync(`${folder}.aside`, folder)
}
