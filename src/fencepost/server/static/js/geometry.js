// Projections, circles, distances and boxes. World coordinates are pixels of the map at zoom 0.

const EARTH_RADIUS_M = 6378137;
const WORLD_SIZE = 256;
const MAX_LATITUDE = 85.0511287798;
const MAX_ROUND_RADIUS_M = 20000; // the projection visibly distorts larger circles

export function projection(space) {
  return space === "planar"
    ? { x: (x) => x, y: (y) => -y, planar: true }
    : {
      x: (lon) => ((lon + 180) / 360) * WORLD_SIZE,
      y: (lat) => {
        const clamped = Math.max(-MAX_LATITUDE, Math.min(MAX_LATITUDE, lat));
        const s = Math.sin((clamped * Math.PI) / 180);
        return (0.5 - Math.log((1 + s) / (1 - s)) / (4 * Math.PI)) * WORLD_SIZE;
      },
      planar: false,
    };
}

/** Return the radius of a circle in world coordinates; null if it must be drawn as a polygon. */
export function radiusInWorld(projection, latitude, radius) {
  if (projection.planar) return radius;
  if (radius > MAX_ROUND_RADIUS_M || Math.abs(latitude) > 80) return null;
  return (radius / (Math.cos((latitude * Math.PI) / 180) * 2 * Math.PI * EARTH_RADIUS_M)) * WORLD_SIZE;
}

/** Return points on a geodesic circle, as alternating longitudes and latitudes. */
export function circlePolygon(lon, lat, radius, corners = 72) {
  const angle = Math.min(radius / EARTH_RADIUS_M, Math.PI * 0.999);
  const phi = (lat * Math.PI) / 180;
  const coordinates = [];
  for (let n = 0; n < corners; n += 1) {
    const bearing = (n / corners) * 2 * Math.PI;
    const latitude = Math.asin(
      Math.sin(phi) * Math.cos(angle) + Math.cos(phi) * Math.sin(angle) * Math.cos(bearing));
    const turn = Math.atan2(
      Math.sin(bearing) * Math.sin(angle) * Math.cos(phi),
      Math.cos(angle) - Math.sin(phi) * Math.sin(latitude));
    coordinates.push(lon + (turn * 180) / Math.PI, (latitude * 180) / Math.PI);
  }
  return coordinates;
}

/** Return the distance between two points: in metres, or in the unit of a planar space. */
export function distance(space, ax, ay, bx, by) {
  if (space === "planar") return Math.hypot(bx - ax, by - ay);
  const rad = Math.PI / 180;
  const a = Math.sin(((by - ay) * rad) / 2) ** 2
    + Math.cos(ay * rad) * Math.cos(by * rad) * Math.sin(((bx - ax) * rad) / 2) ** 2;
  return 2 * EARTH_RADIUS_M * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** Return the points and lines of an event's geometry, as lists of [x, y]; null without geometry. */
export function partsOf(event) {
  const geometry = event?.geometry;
  if (typeof geometry === "string") {
    const point = /^\s*POINT\s*\(\s*(\S+)\s+(\S+)\s*\)\s*$/i.exec(geometry);
    return point ? { points: [[Number(point[1]), Number(point[2])]], lines: [] } : null;
  }
  if (!geometry || typeof geometry !== "object") return null;
  const parts = { points: [], lines: [] };
  collectParts(geometry, parts);
  return parts.points.length || parts.lines.length ? parts : null;
}

function collectParts(geometry, parts) {
  const coordinates = geometry?.coordinates;
  switch (geometry?.type) {
    case "Point": parts.points.push(coordinates); break;
    case "MultiPoint": parts.points.push(...coordinates); break;
    case "LineString": parts.lines.push(coordinates); break;
    case "MultiLineString": case "Polygon": parts.lines.push(...coordinates); break;
    case "MultiPolygon": coordinates.forEach((polygon) => parts.lines.push(...polygon)); break;
    case "GeometryCollection": geometry.geometries.forEach((part) => collectParts(part, parts)); break;
    default: break;
  }
}

/** Return the centre of the bounding box of points and lines. */
export function centreOf(parts) {
  const [west, south, east, north] = boxOf([...parts.points, ...parts.lines.flat()]);
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
