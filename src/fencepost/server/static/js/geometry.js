// Coordinates as the map draws them: pixels of the whole world at zoom 0.

const EARTH_M = 6378137;
const WORLD = 256;
const MOST_LATITUDE = 85.0511287798;
const ROUND_UNTIL_M = 20000; // beyond, a circle is no circle on the map

export function projection(space) {
  return space === "planar"
    ? { x: (x) => x, y: (y) => -y, planar: true }
    : {
      x: (lon) => ((lon + 180) / 360) * WORLD,
      y: (lat) => {
        const held = Math.max(-MOST_LATITUDE, Math.min(MOST_LATITUDE, lat));
        const s = Math.sin((held * Math.PI) / 180);
        return (0.5 - Math.log((1 + s) / (1 - s)) / (4 * Math.PI)) * WORLD;
      },
      planar: false,
    };
}

/** The radius of a small circle in such pixels; null where it must be drawn as a polygon. */
export function radiusInWorld(to, latitude, radius) {
  if (to.planar) return radius;
  if (radius > ROUND_UNTIL_M || Math.abs(latitude) > 80) return null;
  return (radius / (Math.cos((latitude * Math.PI) / 180) * 2 * Math.PI * EARTH_M)) * WORLD;
}

/** Longitudes and latitudes around a large circle, x and y by turns. */
export function aroundCircle(lon, lat, radius, corners = 72) {
  const angle = Math.min(radius / EARTH_M, Math.PI * 0.999);
  const phi = (lat * Math.PI) / 180;
  const found = [];
  for (let n = 0; n < corners; n += 1) {
    const bearing = (n / corners) * 2 * Math.PI;
    const there = Math.asin(
      Math.sin(phi) * Math.cos(angle) + Math.cos(phi) * Math.sin(angle) * Math.cos(bearing));
    const turn = Math.atan2(
      Math.sin(bearing) * Math.sin(angle) * Math.cos(phi),
      Math.cos(angle) - Math.sin(phi) * Math.sin(there));
    found.push(lon + (turn * 180) / Math.PI, (there * 180) / Math.PI);
  }
  return found;
}

/** Metres between two places, or plain distance on a plane. */
export function distance(space, ax, ay, bx, by) {
  if (space === "planar") return Math.hypot(bx - ax, by - ay);
  const rad = Math.PI / 180;
  const a = Math.sin(((by - ay) * rad) / 2) ** 2
    + Math.cos(ay * rad) * Math.cos(by * rad) * Math.sin(((bx - ax) * rad) / 2) ** 2;
  return 2 * EARTH_M * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** The geometry of an event as rings, lines and points: lists of [x, y]; null where it has none. */
export function placesOf(event) {
  const geometry = event?.geometry;
  if (typeof geometry === "string") {
    const point = /^\s*POINT\s*\(\s*(\S+)\s+(\S+)\s*\)\s*$/i.exec(geometry);
    return point ? { points: [[Number(point[1]), Number(point[2])]], lines: [] } : null;
  }
  if (!geometry || typeof geometry !== "object") return null;
  const found = { points: [], lines: [] };
  gather(geometry, found);
  return found.points.length || found.lines.length ? found : null;
}

function gather(geometry, found) {
  const at = geometry?.coordinates;
  switch (geometry?.type) {
    case "Point": found.points.push(at); break;
    case "MultiPoint": found.points.push(...at); break;
    case "LineString": found.lines.push(at); break;
    case "MultiLineString": case "Polygon": found.lines.push(...at); break;
    case "MultiPolygon": at.forEach((one) => found.lines.push(...one)); break;
    case "GeometryCollection": geometry.geometries.forEach((one) => gather(one, found)); break;
    default: break;
  }
}

/** The middle of the box around such places. */
export function middle(places) {
  const [west, south, east, north] = boxOf([...places.points, ...places.lines.flat()]);
  return [(west + east) / 2, (south + north) / 2];
}

export function boxOf(positions) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of positions) {
    box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
  }
  return box;
}
