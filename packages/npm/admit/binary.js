import { accessSync, constants } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const require = createRequire(import.meta.url);

/** Returns the path of the binary: `ADMIT`, the one of the platform's package, or admit on `PATH`. */
export function binary(platform = `${process.platform}-${process.arch}`, environment = process.env) {
  if (environment.ADMIT) {
    if (isExecutable(environment.ADMIT)) return environment.ADMIT;
    throw new Error(`invalid environment variable ADMIT: ${environment.ADMIT} is not an executable file`);
  }
  try {
    return require.resolve(`@admit-dev/${platform}/admit`);
  } catch {
    // The package of the platform is not installed.
  }
  for (const folder of (environment.PATH ?? "").split(delimiter).filter(Boolean)) {
    const path = join(folder, "admit");
    // npm's link to this package's command is not the binary.
    if (!folder.endsWith(join("node_modules", ".bin")) && isExecutable(path)) return path;
  }
  throw new Error(
    `admit not found: the package @admit-dev/${platform} is not installed or does not exist. ` +
      "Install without --omit=optional, or build admit from source: " +
      "cargo install --locked --git https://github.com/admit-dev/admit admit",
  );
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
