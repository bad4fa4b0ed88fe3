// Plain CommonJS, so that even a very old Node can say what is wrong.
// A checkout runs TypeScript sources as they are, which needs a newer Node than the built package does.
const needed = [22, 18]
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
  console.error(
    `Threadkeep's sources need Node ${needed.join('.')} or newer, and this is Node ${process.versions.node}.\n` +
      'Run "npm ci" first: it installs Node 24 for the npm scripts and "npx". If it did, allow the install script of the package "node".',
  )
  process.exit(1)
}
