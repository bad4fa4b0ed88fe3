// Checks the Node version before a script runs the sources. CommonJS and old syntax, so that old versions can run it.
var requiredMajor = 24

if (Number(process.versions.node.split('.')[0]) < requiredMajor) {
  console.error(
    'Threadkeep needs Node ' +
      requiredMajor +
      ' or newer; this is Node ' +
      process.versions.node +
      '. Run "npm ci": it installs Node 24 for npm scripts and npx. If you have run it, allow the install script of the package "node".',
  )
  process.exit(1)
}
